package answer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
)

// Name returns the name of the ConfigMap with the answers for a Cluster, in the Cluster's namespace.
func Name(cluster string) string { return cluster + "-test-extension" }

// Record is what is known about the calls of a hook.
type Record struct {
	// Calls is their number.
	Calls int `json:"calls"`
	// Last is when the hook was called the last time.
	Last metav1.Time `json:"last"`
	// Status, Message and RetryAfterSeconds are those of the last response.
	Status            runtimehooksv1.ResponseStatus `json:"status"`
	Message           string                        `json:"message,omitempty"`
	RetryAfterSeconds int32                         `json:"retryAfterSeconds,omitempty"`
}

// RecordKey returns the key of the Record of a hook.
func RecordKey(hook string) string { return hook + ".calls" }

// Store has the answers and records. Reader must not be a cache: answers count at once.
type Store struct {
	Reader client.Reader
	Writer client.Writer
	Clock  clock.PassiveClock
}

// Take returns the answer for a call, and records the call. An answer that cannot be read is a Failure.
func (s *Store) Take(ctx context.Context, config types.NamespacedName, hook string) (Answer, error) {
	var taken Answer
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		stored := &corev1.ConfigMap{}
		if err := s.Reader.Get(ctx, config, stored); err != nil {
			taken = Answer{}
			return client.IgnoreNotFound(err)
		}
		var err error
		if taken, err = Parse(hook, stored.Data[hook]); err != nil {
			taken = Answer{Status: runtimehooksv1.ResponseStatusFailure, Message: fmt.Sprintf("ConfigMap %s: %s", config, err)}
		}
		return s.record(ctx, stored, hook, taken)
	})
	if apierrors.IsNotFound(err) { // It was deleted since.
		return taken, nil
	}
	if err != nil {
		return Answer{}, fmt.Errorf("cannot get the answer for %s from ConfigMap %s: %w", hook, config, err)
	}
	return taken, nil
}

func (s *Store) record(ctx context.Context, stored *corev1.ConfigMap, hook string, a Answer) error {
	var r Record
	if err := yaml.Unmarshal([]byte(stored.Data[RecordKey(hook)]), &r); err != nil {
		r = Record{} // A user changed it.
	}
	r = Record{
		Calls: r.Calls + 1, Last: metav1.NewTime(s.Clock.Now().UTC().Truncate(time.Second)),
		Status: a.Status, Message: a.Message, RetryAfterSeconds: a.RetryAfterSeconds,
	}
	if r.Status == "" {
		r.Status = runtimehooksv1.ResponseStatusSuccess
	}
	text, err := yaml.Marshal(r)
	if err != nil {
		return err
	}
	changed := stored.DeepCopy()
	if changed.Data == nil {
		changed.Data = map[string]string{}
	}
	changed.Data[RecordKey(hook)] = string(text)
	return s.Writer.Patch(ctx, changed, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
}
