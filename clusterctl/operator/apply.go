package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

// Applier executes plans. Executing a plan again completes an interrupted run.
type Applier struct {
	IO     *iostreams.Streams
	Client client.WithWatch
	// Backoff is used to retry failed writes.
	Backoff wait.Backoff
	// Timeout is how long the operator, and then each provider, may take to become available.
	Timeout time.Duration
}

// Apply installs the operator and declares the providers. It waits for the operator, but not for the providers.
func (a *Applier) Apply(ctx context.Context, plan *Plan) error {
	for _, o := range plan.Declared {
		a.IO.Infof("%s is declared already", o)
	}
	if plan.Operator != nil {
		if err := a.Install(ctx, plan.Operator); err != nil {
			return err
		}
	} else if err := a.waitOperator(ctx, &plan.Running); err != nil {
		return err
	}
	for _, name := range plan.Namespaces() {
		if err := a.namespace(ctx, name); err != nil {
			return err
		}
	}
	for _, d := range plan.Declare {
		if err := a.declare(ctx, d); err != nil {
			return fmt.Errorf("%w; run the same command again to continue", err)
		}
		a.IO.Infof("Declared %s %s in namespace %s", d.Label(), d.Version, d.Namespace)
	}
	return nil
}

// Install writes the operator's objects, and waits until it is available. The Deployment, by which Find knows the version, is written
// last: after an interruption, the operator is not installed.
func (a *Applier) Install(ctx context.Context, m *Manifests) error {
	a.IO.Infof("Installing the operator %s in namespace %s", m.Version, m.Namespace)
	var deployment, others []unstructured.Unstructured
	for _, o := range m.Objects {
		if o.GetKind() == "Deployment" {
			deployment = append(deployment, o)
		} else {
			others = append(others, o)
		}
	}
	for _, objects := range [][]unstructured.Unstructured{others, deployment} {
		if err := a.writer().Objects(ctx, objects); err != nil {
			return fmt.Errorf("the operator %s is partially installed; run the same command again to continue: %w", m.Version, err)
		}
	}
	return a.waitOperator(ctx, &m.Installed)
}

func (a *Applier) waitOperator(ctx context.Context, i *Installed) error {
	return apply.WaitAvailable(ctx, a.Client, client.ObjectKey{Namespace: i.Namespace, Name: i.Deployment}, a.Timeout, func(reason string) {
		a.IO.Infof("Waiting for the operator: %s", reason)
	})
}

func (a *Applier) writer() *apply.Writer {
	return &apply.Writer{Client: a.Client, Backoff: a.Backoff}
}

// declare writes what a provider object refers to, and then the object.
func (a *Applier) declare(ctx context.Context, d *Declaration) error {
	if d.Variables != nil {
		o, err := toUnstructured(d.Variables)
		if err != nil {
			return err
		}
		if err := a.writer().Object(ctx, o); err != nil {
			return failsafe.Redacted(err)
		}
	}
	if d.Release != nil {
		if err := a.Preload(ctx, d.Release); err != nil {
			return err
		}
	}
	return a.writer().Object(ctx, d.Object)
}

// Preload writes the ConfigMap of a release.
func (a *Applier) Preload(ctx context.Context, release *corev1.ConfigMap) error {
	o, err := toUnstructured(release)
	if err != nil {
		return err
	}
	return a.writer().Object(ctx, o)
}

func toUnstructured(o client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

// Wait waits until providers are ready in the versions that their objects declare, each for at most the timeout.
func (a *Applier) Wait(ctx context.Context, objects []inventory.Declaration) error {
	var names []string
	for _, o := range objects {
		names = append(names, o.String())
	}
	a.IO.Infof("Waiting for providers to be ready")
	board := a.IO.Board(names...)
	results := make([]error, len(objects))
	var all sync.WaitGroup
	for i, o := range objects {
		all.Go(func() {
			board.Set(o.String(), "waiting")
			w := &apply.Wait{Client: a.Client, Timeout: a.Timeout, What: o.String() + " is not ready", Report: func(reason string) {
				board.Set(o.String(), "waiting: "+reason)
			}}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(o.GroupVersionKind())
			results[i] = w.Until(ctx, identity(o), list, ready)
			if results[i] == nil {
				board.Set(o.String(), "ready")
			}
		})
	}
	all.Wait()
	return errors.Join(results...)
}

// identity returns an object of the same kind and key.
func identity(o inventory.Declaration) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.GroupVersionKind())
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	return u
}

// status is that of a provider object of any kind.
type status struct {
	Spec   operatorv1.ProviderSpec   `json:"spec"`
	Status operatorv1.ProviderStatus `json:"status"`
}

func statusOf(u *unstructured.Unstructured) (*status, error) {
	p := &status{}
	return p, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p)
}

// because returns the reason of a condition that is not True, otherwise "".
func (p *status) because(kind clusterv1.ConditionType) string {
	for _, c := range p.Status.Conditions {
		if c.Type == string(kind) && c.Status != metav1.ConditionTrue {
			if text := cmp.Or(c.Message, c.Reason); text != "" {
				return c.Type + ": " + text
			}
			return fmt.Sprintf("%s is %s", c.Type, c.Status)
		}
	}
	return ""
}

// ready reports whether a provider is ready, and if not, why.
func ready(o client.Object) (bool, string) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return false, ""
	}
	p, err := statusOf(u)
	if err != nil {
		return false, err.Error()
	}
	if p.Status.ObservedGeneration != u.GetGeneration() {
		return false, "the operator has not seen the object yet"
	}
	for _, kind := range []clusterv1.ConditionType{
		operatorv1.PreflightCheckCondition, operatorv1.ProviderInstalledCondition, operatorv1.ReadyCondition,
	} {
		if reason := p.because(kind); reason != "" {
			return false, reason
		}
	}
	if !slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool { return c.Type == string(operatorv1.ReadyCondition) }) {
		return false, "the provider is not installed yet"
	}
	if p.Status.InstalledVersion == nil || p.Spec.Version != "" && *p.Status.InstalledVersion != p.Spec.Version {
		return false, fmt.Sprintf("version %s is not installed yet", p.Spec.Version)
	}
	return true, ""
}
