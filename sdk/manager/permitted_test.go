package manager

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// granted are the permissions of a manager, as "list configmaps" or "list configmaps in ns".
type granted struct {
	authorization.SelfSubjectAccessReviewInterface
	all   []string
	fails bool
}

// Create implements SelfSubjectAccessReviewInterface.
func (g *granted) Create(
	_ context.Context, review *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions,
) (*authorizationv1.SelfSubjectAccessReview, error) {
	if g.fails {
		return nil, errors.New("down")
	}
	a := review.Spec.ResourceAttributes
	text := a.Verb + " " + a.Resource
	if a.Namespace != "" {
		text += " in " + a.Namespace
	}
	review.Status.Allowed = slices.Contains(g.all, text)
	return review, nil
}

// newTestNeeds returns needs in an API server that serves ConfigMaps or nothing.
func newTestNeeds(g *granted, namespace string, served bool) (*needs, *strings.Builder, *clocktesting.FakeClock) {
	mapper := meta.NewDefaultRESTMapper(nil)
	if served {
		mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	}
	logged, fake := &strings.Builder{}, clocktesting.NewFakeClock(time.Now())
	return &needs{
		scheme: clientgoscheme.Scheme, mapper: mapper, reviews: g, namespace: namespace, clock: fake,
		log:    funcr.New(func(_, args string) { logged.WriteString(args + "\n") }, funcr.Options{}),
		lacked: map[string]func(context.Context) (string, error){},
	}, logged, fake
}

func TestWatches(t *testing.T) {
	for _, tc := range []struct {
		reason    string
		granted   *granted
		namespace string
		absent    bool
		want      bool
		missing   string
		err       string
	}{
		{reason: "all is there", granted: &granted{all: []string{"list configmaps", "watch configmaps"}}, want: true},
		{
			reason: "one namespace is enough for a manager of one", granted: &granted{all: []string{"list configmaps in ns", "watch configmaps in ns"}},
			namespace: "ns", want: true,
		},
		{reason: "it may only list", granted: &granted{all: []string{"list configmaps"}}, missing: "the permission to watch configmaps"},
		{reason: "it may do nothing", granted: &granted{}, missing: "the permission to list configmaps"},
		{reason: "the kind is not served", granted: &granted{}, absent: true, missing: "a CustomResourceDefinition that serves v1"},
		{reason: "a question without an answer is not a no", granted: &granted{fails: true}, err: "reviewing whether the manager may list configmaps: down"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			n, logged, _ := newTestNeeds(tc.granted, tc.namespace, !tc.absent)
			got, err := n.watches(t.Context(), &corev1.ConfigMap{})
			if text := message(err); got != tc.want || text != tc.err {
				t.Errorf("got %t, error %q, want %t, %q", got, text, tc.want, tc.err)
			}
			if lines := strings.Count(logged.String(), "\n"); lines > 1 || !strings.Contains(logged.String(), tc.missing) || (lines == 1) != (tc.missing != "") {
				t.Errorf("want one line about %q, got %s", tc.missing, logged)
			}
		})
	}
}

// TestPatience: roles that are installed together with the manager are waited for, but not forever.
func TestPatience(t *testing.T) {
	for _, tc := range []struct {
		reason string
		after  time.Duration // when the permission is effective
		want   bool
		took   time.Duration
	}{
		{reason: "it is there", want: true},
		{reason: "it takes a moment", after: retry + 1, want: true, took: 2 * retry},
		{reason: "another version has no such permission", after: time.Hour, took: patience},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, _, _ := newTestNeeds(nil, "", true)
				began := time.Now()
				n.clock, n.until, n.reviews = clock.RealClock{}, began.Add(patience), grantedLater{at: began.Add(tc.after)}
				got, err := n.recordsEvents(t.Context())
				if took := time.Since(began); err != nil || got != tc.want || took != tc.took {
					t.Errorf("got %t after %s, error %v, want %t after %s", got, took, err, tc.want, tc.took)
				}
			})
		})
	}
}

// grantedLater grants everything from a time on.
type grantedLater struct {
	granted
	at time.Time
}

// Create implements SelfSubjectAccessReviewInterface.
func (g grantedLater) Create(
	_ context.Context, review *authorizationv1.SelfSubjectAccessReview, _ metav1.CreateOptions,
) (*authorizationv1.SelfSubjectAccessReview, error) {
	review.Status.Allowed = !time.Now().Before(g.at)
	return review, nil
}

func TestSecondLook(t *testing.T) {
	for _, tc := range []struct {
		reason string
		later  []string
		want   string
	}{
		{reason: "what is installed together with the manager takes a moment", later: []string{"create events"}, want: "starting again: what was missing at the start has been installed since: [events]"},
		{reason: "another version has no such permission"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			g := &granted{}
			n, logged, fake := newTestNeeds(g, "", true)
			if records, err := n.recordsEvents(t.Context()); err != nil || records {
				t.Fatalf("records events: %t, error %v", records, err)
			}
			ended := make(chan error, 1)
			go func() { ended <- n.Start(t.Context()) }()
			for !fake.HasWaiters() {
				select {
				case err := <-ended:
					t.Fatalf("it does not look again: %v", err)
				default:
				}
			}
			g.all = tc.later
			fake.Step(secondLook)
			if got := message(<-ended); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if strings.Count(logged.String(), "\n") != 1 {
				t.Errorf("want one line, got %s", logged)
			}
		})
	}
	n, _, _ := newTestNeeds(&granted{all: []string{"create events"}}, "", true)
	if records, err := n.recordsEvents(t.Context()); err != nil || !records {
		t.Errorf("records events: %t, error %v", records, err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Errorf("nothing was missing: %v", err)
	}
}
