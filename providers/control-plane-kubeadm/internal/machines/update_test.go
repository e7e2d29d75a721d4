package machines

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	infraKind    = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "GenericMachine"}
	templateKind = schema.GroupVersionKind{Group: infraKind.Group, Version: infraKind.Version, Kind: "GenericMachineTemplate"}
)

// created returns a control plane of v1.30.0 with one Machine, from template "small", which has a joined Node, and that is now to have the
// version v1.30.1, the template "large" and a file.
func created(t *testing.T, role Role) (*kcptest.World, *snapshot.Machine) {
	t.Helper()
	build := object.Builder{Namespace: "ns"}
	template := func(name string, spec object.Fields) client.Object {
		return build.Provided(templateKind, name, object.Fields{"spec": object.Fields{"template": object.Fields{"spec": spec}}})
	}
	w := kcptest.New(t, object.CRD(infraKind), object.CRD(templateKind), template("small", object.Fields{"size": "s"}), template("large", object.Fields{"size": "l"}))
	w.KCP.Spec.MachineTemplate.Spec.InfrastructureRef = *object.Reference(templateKind, "small")
	testenv.Must(t, manager(w).Create(t.Context(), w.ControlPlane, "zone", role))
	m := w.Machines[0]
	infra := live(t, w, m).infrastructure
	testenv.Must(t, unstructured.SetNestedField(infra.Object, "test:///1", "spec", "providerID"))
	testenv.Must(t, w.API.Update(t.Context(), infra))
	config := live(t, w, m).config
	config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token = "abcdef.0123456789abcdef"
	config.Spec.ClusterConfiguration.ControlPlaneEndpoint = map[Role]string{Initialize: "10.0.0.1:6443"}[role]
	testenv.Must(t, w.API.Update(t.Context(), config))
	w.KCP.Spec.Version = "v1.30.1"
	w.KCP.Spec.MachineTemplate.Spec.InfrastructureRef = *object.Reference(templateKind, "large")
	w.KCP.Spec.KubeadmConfigSpec.Files = []bootstrapv1.File{{Path: "/etc/kubelet.conf", Content: "maxPods: 50"}}
	w.API.Writes, w.API.LiveReads = nil, nil
	return w, reread(t, w)
}

// objects are a Machine and its objects in the API server.
type objects struct {
	machine        *clusterv1.Machine
	infrastructure *unstructured.Unstructured
	config         *bootstrapv1.KubeadmConfig
}

func live(t *testing.T, w *kcptest.World, m *snapshot.Machine) objects {
	t.Helper()
	o := objects{machine: &clusterv1.Machine{}, infrastructure: &unstructured.Unstructured{}, config: &bootstrapv1.KubeadmConfig{}}
	o.infrastructure.SetGroupVersionKind(infraKind)
	for _, obj := range []client.Object{o.machine, o.infrastructure, o.config} {
		testenv.Must(t, w.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: m.Name}, obj))
	}
	return o
}

// reread reads the Machine as the next reconcile does.
func reread(t *testing.T, w *kcptest.World) *snapshot.Machine {
	t.Helper()
	o := live(t, w, w.Machines[0])
	m := &snapshot.Machine{Machine: o.machine, Config: o.config, Infrastructure: o.infrastructure}
	spec, err := snapshot.SpecOf(t.Context(), w.KCP)
	testenv.Must(t, err)
	testenv.Must(t, m.Compare(t.Context(), spec, clocktesting.NewFakePassiveClock(object.Now())))
	w.Machines = []*snapshot.Machine{m}
	return m
}

func TestUpdateInPlace(t *testing.T) {
	for name, role := range map[string]Role{"it has initialized the cluster": Initialize, "it has joined": Join} {
		t.Run(name, func(t *testing.T) {
			w, m := created(t, role)
			if len(m.Outdated) != 3 {
				t.Fatalf("outdated because of %q", m.Outdated)
			}
			obstacles, err := manager(w).UpdateInPlace(t.Context(), w.ControlPlane, m, &kcptest.Updater{})
			if err != nil || len(obstacles) > 0 {
				t.Fatalf("obstacles %q, error %v", obstacles, err)
			}
			want := []string{
				"patch GenericMachine %s", "patch KubeadmConfig %s", // the dry runs
				"patch Machine %s", "patch GenericMachine %s", "patch KubeadmConfig %s", "patch Machine %s",
			}
			for i := range want {
				want[i] = fmt.Sprintf(want[i], m.Name)
			}
			if diff := cmp.Diff(want, w.API.Writes); diff != "" {
				t.Errorf("two dry runs, then the marks and what is desired (-want +got):\n%s", diff)
			}
			o := live(t, w, m)
			if !inplace.IsMarked(o.machine) || !inplace.IsPending(o.machine) || !inplace.IsMarked(o.infrastructure) || !inplace.IsMarked(o.config) {
				t.Errorf("marks: %v, %v, %v", o.machine.Annotations, o.infrastructure.GetAnnotations(), o.config.Annotations)
			}
			spec := map[string]any{"size": "l", "providerID": "test:///1"}
			if diff := cmp.Diff(spec, o.infrastructure.Object["spec"]); diff != "" {
				t.Errorf("what the provider has set stays (-want +got):\n%s", diff)
			}
			if o.machine.Spec.Version != "v1.30.1" || o.machine.Spec.FailureDomain != "zone" || len(o.config.Spec.Files) != 1 {
				t.Errorf("version %s, failure domain %q, files %v", o.machine.Spec.Version, o.machine.Spec.FailureDomain, o.config.Spec.Files)
			}
			if o.config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token == "" || (o.config.Spec.ClusterConfiguration.ControlPlaneEndpoint == "") != (role == Join) {
				t.Errorf("what the bootstrap provider has added stays: %+v", o.config.Spec)
			}
			if m := reread(t, w); len(m.Outdated) > 0 {
				t.Errorf("it is still outdated: %q", m.Outdated)
			}
		})
	}
}

func TestObstacles(t *testing.T) {
	w, m := created(t, Join)
	refuse := func(kind string, failure error) func(fakeapi.Request) error {
		return func(r fakeapi.Request) error {
			if r.Verb == "patch" && r.Kind == kind {
				return failure
			}
			return nil
		}
	}
	secret := apierrors.NewInvalid(schema.GroupKind{Kind: "KubeadmConfig"}, "m", nil)
	secret.ErrStatus.Message = "the password is hunter2"
	for _, tc := range []struct {
		reason    string
		extension *kcptest.Updater
		before    func(fakeapi.Request) error
		obstacles []string
		err       string
	}{
		{reason: "no extension is registered", extension: &kcptest.Updater{Unregistered: true}, obstacles: []string{"no extension is registered for it"}},
		{reason: "the extension was removed meanwhile", extension: &kcptest.Updater{Err: extension.ErrNoHandler}, obstacles: []string{"no extension is registered for it"}},
		{reason: "the extension can only do a part", extension: &kcptest.Updater{Cannot: []string{"size", "version"}}, obstacles: []string{"Machine spec.version", "GenericMachine spec.size"}},
		{reason: "the extension fails", extension: &kcptest.Updater{Err: errors.New("no route")}, err: "no route"},
		{
			reason: "the provider does not allow the change", extension: &kcptest.Updater{},
			before:    refuse("GenericMachine", apierrors.NewForbidden(schema.GroupResource{Resource: "genericmachines"}, "m", errors.New("size is immutable"))),
			obstacles: []string{`genericmachines "m" is forbidden: size is immutable`},
		},
		{
			reason: "what a KubeadmConfig contains is not shown", extension: &kcptest.Updater{},
			before: refuse("KubeadmConfig", secret), obstacles: []string{"the API server answered 422 Unprocessable Entity"},
		},
		{
			reason: "an API server that cannot be reached is no obstacle", extension: &kcptest.Updater{},
			before: refuse("KubeadmConfig", errors.New("connection refused")), err: "connection refused",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w.API.Before = tc.before
			obstacles, err := manager(w).UpdateInPlace(t.Context(), w.ControlPlane, m, tc.extension)
			w.API.Before = nil
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.obstacles, obstacles); diff != "" {
				t.Errorf("obstacles (-want +got):\n%s", diff)
			}
			if o := live(t, w, m); inplace.IsUpdating(o.machine) || o.machine.Spec.Version != "v1.30.0" || len(o.config.Spec.Files) > 0 {
				t.Errorf("something was written: %+v", o)
			}
		})
	}
}

// Wherever the manager is killed, the next reconcile completes the writes, also if the spec has changed meanwhile; the Machine is outdated
// until its last write.
func TestUpdateInPlaceContinuesAfterKills(t *testing.T) {
	for killed := 2; killed < 6; killed++ { // the first two are dry runs
		for _, lost := range []bool{false, true} {
			for _, changedMind := range []bool{false, true} {
				t.Run(fmt.Sprintf("write %d, response lost: %t, changed mind: %t", killed, lost, changedMind), func(t *testing.T) {
					w, m := created(t, Join)
					u, n := &kcptest.Updater{}, 0
					kill := func(r fakeapi.Request) error {
						if r.IsWrite() {
							if n++; n > killed {
								return errors.New("killed")
							}
						}
						return nil
					}
					if lost {
						w.API.After = func(r fakeapi.Request, err error) error { return errors.Join(err, kill(r)) }
					} else {
						w.API.Before = kill
					}
					if _, err := manager(w).UpdateInPlace(t.Context(), w.ControlPlane, m, u); err == nil {
						t.Fatal("the interruption has no effect")
					}
					w.API.Before, w.API.After = nil, nil
					if changedMind {
						w.KCP.Spec.MachineTemplate.Spec.InfrastructureRef.Name, w.KCP.Spec.Version = "small", "v1.30.2"
					}
					m = reread(t, w)
					if complete := lost && killed == 5 && !changedMind; !complete && len(m.Outdated) == 0 {
						t.Error("the Machine is not outdated, so that nothing would continue the update")
					}
					if obstacles, err := manager(w).UpdateInPlace(t.Context(), w.ControlPlane, m, u); err != nil || len(obstacles) > 0 {
						t.Fatalf("obstacles %q, error %v", obstacles, err)
					}
					size := map[bool]string{false: "l", true: "s"}[changedMind]
					m = reread(t, w)
					if got, _, _ := unstructured.NestedString(m.Infrastructure.Object, "spec", "size"); got != size || len(m.Outdated) > 0 || !inplace.IsPending(m.Machine) {
						t.Errorf("size %s, want %s; outdated %q; annotations %v", got, size, m.Outdated, m.Annotations)
					}
				})
			}
		}
	}
}

// Another leader has updated the Machine: what is read from a stale cache is not written.
func TestUpdateInPlaceOfAnOutdatedCopy(t *testing.T) {
	w, m := created(t, Join)
	w.Update(t, m.Name, func(m *clusterv1.Machine) { m.Labels["changed"] = "now" })
	if _, err := manager(w).UpdateInPlace(t.Context(), w.ControlPlane, m, &kcptest.Updater{}); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	if o := live(t, w, m); inplace.IsUpdating(o.machine) || inplace.IsMarked(o.infrastructure) {
		t.Error("something was written")
	}
}

// A Machine whose update was abandoned is outdated although its objects are as desired.
func TestAbandon(t *testing.T) {
	w, m := created(t, Join)
	if _, err := manager(w).UpdateInPlace(t.Context(), w.ControlPlane, m, &kcptest.Updater{}); err != nil {
		t.Fatal(err)
	}
	if m = reread(t, w); len(m.Outdated) > 0 {
		t.Fatalf("outdated because of %q", m.Outdated)
	}
	testenv.Must(t, manager(w).Abandon(t.Context(), m))
	m = reread(t, w)
	if diff := cmp.Diff([]string{"an update in place could not be completed"}, m.Outdated); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if inplace.IsUpdating(m.Machine) || inplace.IsMarked(m.Infrastructure) || inplace.IsMarked(m.Config) {
		t.Errorf("marks are left: %v, %v, %v", m.Annotations, m.Infrastructure.GetAnnotations(), m.Config.Annotations)
	}
}

func TestOverlaid(t *testing.T) {
	is := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{clusterv1.TemplateClonedFromNameAnnotation: "old", "other": "stays"}},
		"spec": map[string]any{
			"size": "s", "image": "a", "providerID": "id", "disks": []any{"x"},
			"network": map[string]any{"subnet": "a", "address": "10.0.0.1"}, "spot": map[string]any{"price": "1"}, "empty": map[string]any{},
		},
	}}
	is.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:size":{},"f:image":{},"f:disks":{},"f:network":{"f:subnet":{}},"f:spot":{".":{},"f:price":{}}}}`)}})
	wanted := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{clusterv1.TemplateClonedFromNameAnnotation: "new"}},
		"spec":     map[string]any{"size": "l", "disks": []any{"y", "z"}, "network": map[string]any{"zone": "b"}},
	}}
	got := inplace.Overlaid(is, wanted, owned(is))
	want := map[string]any{
		"size": "l", "providerID": "id", "disks": []any{"y", "z"}, "network": map[string]any{"zone": "b", "address": "10.0.0.1"}, "empty": map[string]any{},
	}
	if diff := cmp.Diff(want, got.Object["spec"]); diff != "" {
		t.Errorf("fields that a control plane has set go with the template, others stay (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{clusterv1.TemplateClonedFromNameAnnotation: "new", "other": "stays"}, got.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}
