package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machineset"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// world is a namespace with a Cluster, and the controllers of MachineDeployments and MachineSets. Machines become ready and are
// deleted immediately, except for those with brokenVersion.
type world struct {
	*testing.T
	client.Client
	namespace string
	build     object.Builder
	requests  *testenv.Requests
}

// brokenVersion is the version of Machines that never become ready.
const brokenVersion = "v1.29.13"

// newWorld returns a world; without run, no controllers run.
func newWorld(t *testing.T, run bool) *world {
	t.Helper()
	e := server.Start(t, "providers/core/config/crd", "providers/infrastructure-in-memory/config/crd")
	s := testenv.Scheme(t)
	w := &world{T: t, Client: e.NewClient(t, s), namespace: e.Namespace(t)}
	w.build.Namespace = w.namespace
	if run {
		w.requests = e.Run(t, s, w.namespace, func(mgr ctrl.Manager) error {
			return errors.Join(
				Setup(t.Context(), mgr, Options{Concurrency: 2}),
				machineset.Setup(t.Context(), mgr, machineset.Options{Concurrency: 2}),
				ctrl.NewControllerManagedBy(mgr).Named("machines").For(&clusterv1.Machine{}).Complete(&machines{w.Client}),
			)
		})
	}
	w.create(w.build.Cluster())
	w.create(w.build.Template(infrastructure("InMemoryMachineTemplate"), "small"))
	w.create(w.build.Template(infrastructure("InMemoryMachineTemplate"), "large"))
	return w
}

// infrastructure returns a kind of an infrastructure provider.
func infrastructure(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1", Kind: kind}
}

func (w *world) create(obj client.Object) {
	w.Helper()
	testenv.Must(w, w.Create(w.Context(), obj))
}

// machines replaces the Machine controller and providers.
type machines struct{ client.Client }

func (p *machines) Reconcile(ctx context.Context, req ctrl.Request) (reconcile.Result, error) {
	m := &clusterv1.Machine{}
	if err := p.Get(ctx, req.NamespacedName, m); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	before := m.DeepCopy()
	switch {
	case !m.DeletionTimestamp.IsZero():
		controllerutil.RemoveFinalizer(m, clusterv1.MachineFinalizer)
		return reconcile.Result{}, client.IgnoreNotFound(p.Patch(ctx, m, client.MergeFrom(before)))
	case m.Status.NodeRef.IsDefined() || m.Spec.Version == brokenVersion:
		return reconcile.Result{}, nil
	}
	object.Running(time.Now())(m)
	return reconcile.Result{}, client.IgnoreNotFound(p.Status().Patch(ctx, m, client.MergeFrom(before)))
}

// deployment creates a MachineDeployment with the defaults of the webhook.
func (w *world) deployment(replicas int32, change ...func(*clusterv1.MachineDeployment)) *clusterv1.MachineDeployment {
	md := w.build.MachineDeployment("md", func(md *clusterv1.MachineDeployment) {
		md.Labels = nil
		md.Annotations = map[string]string{"own": "annotation", corev1.LastAppliedConfigAnnotation: "{}"}
		md.Spec.Replicas = &replicas
		template := &md.Spec.Template
		template.Labels["tier"] = "one"
		template.Spec.Version, template.Spec.Bootstrap.DataSecretName = "v1.30.0", ptr.To("data")
		template.Spec.InfrastructureRef = *object.Reference(infrastructure("InMemoryMachineTemplate"), "small")
	})
	for _, f := range change {
		f(md)
	}
	w.create(md)
	return md
}

// change updates the deployment like a user.
func (w *world) change(md *clusterv1.MachineDeployment, change func()) {
	w.Helper()
	w.eventually("the MachineDeployment is updated", func() error {
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(md), md); err != nil {
			return err
		}
		change()
		return w.Update(w.Context(), md)
	})
}

func version(md *clusterv1.MachineDeployment, v string) func() {
	return func() { md.Spec.Template.Spec.Version = v }
}

func (w *world) eventually(what string, check func() error) {
	w.Helper()
	testenv.Eventually(w, what, check)
}

// eventuallyIs waits until describe returns want.
func (w *world) eventuallyIs(md *clusterv1.MachineDeployment, want string) {
	w.Helper()
	w.eventually(want, func() error {
		got, err := w.describe(md)
		if err == nil && got != want {
			err = fmt.Errorf("got %s", got)
		}
		return err
	})
}

// describe returns the phase of the deployment, its counters replicas/updated/ready/available/unavailable, and for each set,
// sorted by revision, its revision, version and spec/status replicas.
func (w *world) describe(md *clusterv1.MachineDeployment) (string, error) {
	if err := w.Get(w.Context(), client.ObjectKeyFromObject(md), md); err != nil {
		return "", err
	}
	s := md.Status
	if s.ObservedGeneration != md.Generation {
		return "", fmt.Errorf("observedGeneration is not %d, but %d", md.Generation, s.ObservedGeneration)
	}
	older := md.GetV1Beta1Status()
	head := s.Phase + " "
	for i, n := range []*int32{s.Replicas, older.UpdatedReplicas, older.ReadyReplicas, older.AvailableReplicas, older.UnavailableReplicas} {
		head += strings.Repeat("/", min(i, 1)) + strconv.Itoa(int(ptr.Deref(n, 0)))
	}
	parts := []string{head}
	for _, set := range w.sets() {
		part := fmt.Sprintf("r%s %s %d/%d", set.Annotations[clusterv1.RevisionAnnotation], set.Spec.Template.Spec.Version,
			ptr.Deref(set.Spec.Replicas, 0), ptr.Deref(set.Status.Replicas, 0))
		if set.Annotations[clusterv1.DisableMachineCreateAnnotation] == "true" {
			part += " frozen"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", "), nil
}

// sets lists the MachineSets, sorted by revision.
func (w *world) sets() []clusterv1.MachineSet {
	w.Helper()
	list := &clusterv1.MachineSetList{}
	testenv.Must(w, w.List(w.Context(), list, client.InNamespace(w.namespace)))
	slices.SortFunc(list.Items, func(a, b clusterv1.MachineSet) int { return int(revision(a.Annotations) - revision(b.Annotations)) })
	return list.Items
}

func (w *world) machines() []clusterv1.Machine {
	w.Helper()
	list := &clusterv1.MachineList{}
	testenv.Must(w, w.List(w.Context(), list, client.InNamespace(w.namespace)))
	return list.Items
}
