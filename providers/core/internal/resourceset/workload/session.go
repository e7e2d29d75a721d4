package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	distribution "sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/manifest"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

const (
	// FieldManager is the field manager of applied objects.
	FieldManager = "clusterresourceset-controller"
	// maxSilent is after how many requests without a response a Session ends. One alone can be due to an admission webhook in the
	// workload cluster that does not respond, which must not keep other objects from being applied.
	maxSilent = 2
	// servedWait is how long a Session waits altogether until the API server serves the kinds of the CustomResourceDefinitions that it
	// applied, which takes less than a second.
	servedWait = 5 * time.Second
	servedPoll = 100 * time.Millisecond
)

// ErrSilent means that the API server does not respond.
var ErrSilent = errors.New("the API server of the workload cluster did not respond")

// errNotServed means that the API server does not have a kind.
var errNotServed = errors.New("the workload cluster does not serve this kind: is its CustomResourceDefinition missing?")

// Session applies objects to one workload cluster. It must only be used by one goroutine.
type Session struct {
	client client.Client
	// pause waits, or returns an error when the context ends.
	pause func(ctx context.Context, d time.Duration) error

	// defined are the kinds of the CustomResourceDefinitions that were applied.
	defined map[schema.GroupKind]bool
	// left is how long the Session still waits for kinds.
	left   time.Duration
	silent int
}

// NewSession returns a Session. pause waits; nil for the real time.
func NewSession(c client.Client, pause func(ctx context.Context, d time.Duration) error) *Session {
	if pause == nil {
		pause = sleep
	}
	return &Session{client: c, pause: pause, defined: map[schema.GroupKind]bool{}, left: servedWait}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Silent reports whether the Session has ended because the API server does not respond.
func (s *Session) Silent() bool { return s.silent >= maxSilent }

// Once creates an object, unless it exists.
func (s *Session) Once(ctx context.Context, o manifest.Object) error { return s.do(ctx, o, s.create) }

// Reconcile applies an object.
func (s *Session) Reconcile(ctx context.Context, o manifest.Object) error {
	return s.do(ctx, o, s.apply)
}

func (s *Session) do(ctx context.Context, o manifest.Object, write func(context.Context, *unstructured.Unstructured) error) error {
	if s.Silent() {
		return ErrSilent
	}
	attempt := func() error {
		target := o.DeepCopy()
		if err := s.place(target); err != nil {
			return err
		}
		return write(ctx, target)
	}
	err := attempt()
	for pause := servedPoll; unserved(err) && s.defined[o.GroupVersionKind().GroupKind()] && s.left > 0; pause *= 2 {
		pause = min(pause, s.left)
		s.left -= pause
		if s.pause(ctx, pause) != nil {
			break
		}
		err = attempt()
	}
	if err == nil {
		s.define(o.Unstructured)
		return nil
	}
	return s.shown(err)
}

// place sets the namespace of an object: "default" if it has none, and none for cluster-scoped kinds.
func (s *Session) place(o *unstructured.Unstructured) error {
	namespaced, err := s.client.IsObjectNamespaced(o)
	switch {
	case err != nil:
		return err
	case !namespaced:
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(corev1.NamespaceDefault)
	}
	return nil
}

// unserved reports whether an error can mean that a new kind is not served yet.
func unserved(err error) bool {
	return meta.IsNoMatchError(err) || slices.ContainsFunc(each(err), apierrors.IsNotFound)
}

// define records the kind that a CustomResourceDefinition defines.
func (s *Session) define(o *unstructured.Unstructured) {
	if o.GetKind() != distribution.KindCRD {
		return
	}
	group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
	s.defined[schema.GroupKind{Group: group, Kind: kind}] = true
}

// shown returns an error in a form that may be shown. It counts requests without a response.
func (s *Session) shown(err error) error {
	noMatch := true
	for _, one := range each(err) {
		var status apierrors.APIStatus
		if errors.As(one, &status) {
			s.silent = 0
			return failsafe.Redacted(one)
		}
		noMatch = noMatch && meta.IsNoMatchError(one)
	}
	if noMatch {
		return errNotServed
	}
	s.silent++
	return ErrSilent
}

// each returns the errors that an aggregate consists of: RESTMappers return one if discovery fails.
func each(err error) []error {
	if many, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		return many.Errors()
	}
	return []error{err}
}

// create creates an object, unless it exists.
func (s *Session) create(ctx context.Context, o *unstructured.Unstructured) error {
	err := s.client.Create(ctx, o, client.FieldOwner(FieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Ready reports whether the API server has completed its start: it creates Service kubernetes last.
func (s *Session) Ready(ctx context.Context) (bool, error) {
	err := s.client.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceDefault, Name: "kubernetes"}, &corev1.Service{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Service kubernetes: %w", s.shown(err))
	}
	return true, nil
}
