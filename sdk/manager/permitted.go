package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	// patience is how long a start waits for what is missing, and retry how often it looks: what is installed together with the manager may
	// take a moment to be effective.
	patience, retry = 5 * time.Second, 250 * time.Millisecond
	// secondLook is how long after the start the manager looks once more for what it lacked then: on a busy machine, a moment is longer.
	secondLook = 30 * time.Second
)

// needs are what the manager can do without, because the definitions and permissions of an installation of another version lack it. The
// manager finds out at the start: a watch that is not possible would be tried again and again, and end the manager in the end.
type needs struct {
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	reviews   authorization.SelfSubjectAccessReviewInterface
	namespace string
	clock     clock.Clock
	log       logr.Logger
	// until is when the patience ends.
	until time.Time
	// lacked has what was missing, by the texts of the log.
	lacked map[string]func(context.Context) (missing string, err error)
}

// newNeeds returns needs of a manager that may watch only one namespace.
func newNeeds(mgr ctrl.Manager, namespace string, log logr.Logger) (*needs, error) {
	api, err := authorization.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("preparing reviews of permissions: %w", err)
	}
	now := clock.RealClock{}
	return &needs{
		scheme: mgr.GetScheme(), mapper: mgr.GetRESTMapper(), reviews: api.SelfSubjectAccessReviews(), namespace: namespace,
		clock: now, until: now.Now().Add(patience), log: log, lacked: map[string]func(context.Context) (string, error){},
	}, nil
}

// watches implements Environment.Watches.
func (n *needs) watches(ctx context.Context, obj client.Object) (bool, error) {
	kind, err := apiutil.GVKForObject(obj, n.scheme)
	if err != nil {
		return false, err
	}
	return n.has(ctx, "watching "+kind.GroupKind().String(), func(ctx context.Context) (string, error) {
		mapping, err := n.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			return "a CustomResourceDefinition that serves " + kind.Version, nil
		}
		if err != nil {
			return "", fmt.Errorf("looking for the resource of %s: %w", kind.GroupKind(), err)
		}
		return n.denied(ctx, mapping.Resource.Group, mapping.Resource.Resource, "list", "watch")
	})
}

// recordsEvents reports whether the manager may create events.
func (n *needs) recordsEvents(ctx context.Context) (bool, error) {
	return n.has(ctx, "events", func(ctx context.Context) (string, error) { return n.denied(ctx, "", "events", "create") })
}

// has reports whether nothing is missing for what the manager could do, and logs what is.
func (n *needs) has(ctx context.Context, what string, look func(context.Context) (missing string, err error)) (bool, error) {
	missing, err := look(ctx)
	for err == nil && missing != "" && n.clock.Now().Before(n.until) {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-n.clock.After(retry):
		}
		missing, err = look(ctx)
	}
	if err != nil || missing == "" {
		return err == nil, err
	}
	n.lacked[what] = look
	n.log.Info("Running without "+what, "missing", missing,
		"advice", "install the components of this version, or continue without what depends on it, as the installed version does")
	return false, nil
}

// denied returns the first permission that the manager does not have; empty if it has all.
func (n *needs) denied(ctx context.Context, group, resource string, verbs ...string) (string, error) {
	for _, verb := range verbs {
		review, err := n.reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: n.namespace, Verb: verb, Group: group, Resource: resource},
		}}, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) { // An API server without reviews has no roles either.
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("reviewing whether the manager may %s %s: %w", verb, resource, err)
		}
		if !review.Status.Allowed {
			return "the permission to " + verb + " " + resource, nil
		}
	}
	return "", nil
}

// Start looks once more for what is missing. What is there by then is used after a restart, so it is an error.
func (n *needs) Start(ctx context.Context) error {
	if len(n.lacked) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-n.clock.After(secondLook):
	}
	var found []string
	for what, look := range n.lacked {
		if missing, err := look(ctx); err == nil && missing == "" {
			found = append(found, what)
		}
	}
	if len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return errors.New("starting again: what was missing at the start has been installed since: " + fmt.Sprint(found))
}

// NeedLeaderElection implements LeaderElectionRunnable: every replica has to know.
func (*needs) NeedLeaderElection() bool { return false }

// silentManager is a manager that records no events.
type silentManager struct{ ctrl.Manager }

// GetEventRecorderFor returns a recorder that discards events.
func (silentManager) GetEventRecorderFor(string) record.EventRecorder { return silence{} }

// silence discards events.
type silence struct{}

// Event implements record.EventRecorder.
func (silence) Event(runtime.Object, string, string, string) {}

// Eventf implements record.EventRecorder.
func (silence) Eventf(runtime.Object, string, string, string, ...any) {}

// AnnotatedEventf implements record.EventRecorder.
func (silence) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {}
