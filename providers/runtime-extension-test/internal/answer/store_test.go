package answer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestTake(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: Name("c")}
	const hook = "BeforeClusterUpgrade"
	tests := []struct {
		reason     string
		data       map[string]string // nil: no ConfigMap
		want       Answer
		wantRecord string
	}{
		{reason: "Without a ConfigMap, the answer is a success, and nothing is recorded."},
		{
			reason: "The first call is recorded.", data: map[string]string{hook: "{retryAfterSeconds: 5, message: later}"},
			want:       Answer{RetryAfterSeconds: 5, Message: "later"},
			wantRecord: "calls: 1\nlast: \"2026-01-02T03:04:05Z\"\nmessage: later\nretryAfterSeconds: 5\nstatus: Success\n",
		},
		{
			reason: "Calls are counted, also without an answer for the hook.", data: map[string]string{hook + ".calls": "calls: 7"},
			wantRecord: "calls: 8\nlast: \"2026-01-02T03:04:05Z\"\nstatus: Success\n",
		},
		{
			reason: "An answer that cannot be read is a failure that says why.", data: map[string]string{hook: "status: Maybe"},
			want:       Answer{Status: "Failure", Message: `ConfigMap ns/c-test-extension: key BeforeClusterUpgrade: status is "Maybe", but must be Success or Failure`},
			wantRecord: "calls: 1\nlast: \"2026-01-02T03:04:05Z\"\nmessage: 'ConfigMap ns/c-test-extension: key BeforeClusterUpgrade: status is \"Maybe\",\n  but must be Success or Failure'\nstatus: Failure\n",
		},
		{reason: "A record that a user wrote is replaced.", data: map[string]string{hook + ".calls": "[]"}, wantRecord: "calls: 1\nlast: \"2026-01-02T03:04:05Z\"\nstatus: Success\n"},
	}
	for _, tc := range tests {
		builder := fake.NewClientBuilder()
		if tc.data != nil {
			builder = builder.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: tc.data})
		}
		c := builder.Build()
		s := &Store{Reader: c, Writer: c, Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))}
		got, err := s.Take(t.Context(), key, hook)
		if err != nil {
			t.Errorf("%s\n%v", tc.reason, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s\n%s", tc.reason, diff)
		}
		stored := &corev1.ConfigMap{}
		if err := client.IgnoreNotFound(c.Get(t.Context(), key, stored)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.wantRecord, stored.Data[hook+".calls"]); diff != "" {
			t.Errorf("%s\n%s", tc.reason, diff)
		}
	}
}

type broken struct{ client.Reader }

func (broken) Get(_ context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return errors.New("the server is away")
}

func TestTakeFails(t *testing.T) {
	s := &Store{Reader: broken{}}
	_, err := s.Take(t.Context(), types.NamespacedName{Namespace: "ns", Name: "n"}, "BeforeClusterCreate")
	if err == nil || err.Error() != "cannot get the answer for BeforeClusterCreate from ConfigMap ns/n: the server is away" {
		t.Errorf("got %v: an unknown answer must not become a success", err)
	}
}
