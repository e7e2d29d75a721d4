package takeover

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// world is a management cluster with a set of three Machines, of which two have the hook.
func world(t *testing.T) *fakeapi.Server {
	t.Helper()
	build := object.Builder{Namespace: "ns"}
	definition := func(plural, kind string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: plural + ".cluster.x-k8s.io"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: kind},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1beta1"}, {Name: "v1beta2", Storage: true}},
			},
			Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1beta1"}},
		}
	}
	objects := []client.Object{
		definition("clusters", "Cluster"), definition("machines", "Machine"), definition("machinesets", "MachineSet"),
		definition("machinedeployments", "MachineDeployment"),
		build.Cluster(), build.MachineSet("s", func(s *clusterv1.MachineSet) {
			s.Finalizers = []string{"user", clusterv1.MachineSetFinalizer}
		}),
	}
	for i := range 3 {
		objects = append(objects, build.Machine(fmt.Sprint("m", i), func(m *clusterv1.Machine) {
			m.Annotations = map[string]string{"user": ""}
			if i > 0 {
				m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation] = ""
			}
		}))
	}
	return fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, appsv1.AddToScheme, coordinationv1.AddToScheme}, Objects: objects})
}

// TestApply is interrupted at every second write, before it or before its response, and repeated.
func TestApply(t *testing.T) {
	to, err := Target("v1.7.9")
	testenv.Must(t, err)
	for _, when := range []string{"never", "before", "after"} {
		t.Run(when, func(t *testing.T) {
			s := world(t)
			c := s.ForController().Client
			var writes atomic.Int64
			kill := func(r fakeapi.Request) error {
				if !r.IsWrite() {
					return nil
				}
				if writes.Add(1)%2 == 1 {
					return errors.New("killed")
				}
				return nil
			}
			switch when {
			case "before":
				s.Before = kill
			case "after":
				s.After = func(r fakeapi.Request, err error) error { return errors.Join(err, kill(r)) }
			}
			var plan Plan
			for tries := range 5 {
				objects, err := Read(t.Context(), c, nil)
				testenv.Must(t, err)
				if plan = HandBack(to, objects); len(plan.Changes) == 0 {
					break
				}
				if err := Apply(t.Context(), c, to, objects, plan, nil); err == nil && when != "never" && tries == 0 {
					t.Error("it was not interrupted")
				}
			}
			if len(plan.Changes)+len(plan.Obstacles) > 0 {
				t.Errorf("left: %v %v", plan.Changes, plan.Obstacles)
			}
			set, machines := &clusterv1.MachineSet{}, &clusterv1.MachineList{}
			testenv.Must(t, s.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "s"}, set), s.List(t.Context(), machines))
			if diff := cmp.Diff([]string{"user"}, set.Finalizers); diff != "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
			for _, m := range machines.Items {
				if diff := cmp.Diff(map[string]string{"user": ""}, m.Annotations); diff != "" {
					t.Errorf("annotations of %s (-want +got):\n%s", m.Name, diff)
				}
			}
		})
	}
}

// TestKilled kills a handback before and after each of its writes: no later request of that process succeeds. Running it again ends the
// same as without a kill.
func TestKilled(t *testing.T) {
	to, err := Target("v1.7.9")
	testenv.Must(t, err)
	handBack := func(c client.Client) error {
		objects, err := Read(t.Context(), c, nil)
		if err != nil {
			return err
		}
		return Apply(t.Context(), c, to, objects, HandBack(to, objects), nil)
	}
	undisturbed := world(t)
	var writes atomic.Int64
	undisturbed.Before = func(r fakeapi.Request) error {
		if r.IsWrite() {
			writes.Add(1)
		}
		return nil
	}
	testenv.Must(t, handBack(undisturbed.ForController().Client))
	want := metadata(t, undisturbed)
	if writes.Load() != 3 {
		t.Fatalf("%d writes, want 3: one per object", writes.Load())
	}
	for n := int64(1); n <= writes.Load(); n++ {
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprintf("write %d, before it: %t", n, before), func(t *testing.T) {
				s := world(t)
				var killed atomic.Bool
				var begun, made atomic.Int64
				dead := errors.New("killed")
				s.Before = func(r fakeapi.Request) error {
					if r.IsWrite() && begun.Add(1) == n && before {
						killed.Store(true)
					}
					if killed.Load() {
						return dead
					}
					return nil
				}
				s.After = func(r fakeapi.Request, err error) error {
					if r.IsWrite() && err == nil && made.Add(1) == n && !before {
						killed.Store(true)
						return dead
					}
					return err
				}
				if err := handBack(s.ForController().Client); err == nil {
					t.Fatal("it was not killed")
				}
				s.Before, s.After = nil, nil
				testenv.Must(t, handBack(s.ForController().Client))
				if diff := cmp.Diff(want, metadata(t, s)); diff != "" {
					t.Errorf("annotations and finalizers (-undisturbed +killed):\n%s", diff)
				}
			})
		}
	}
}

// metadata returns the annotations and finalizers of what is handed back, by name.
func metadata(t *testing.T, s *fakeapi.Server) map[string]string {
	t.Helper()
	sets, machines := &clusterv1.MachineSetList{}, &clusterv1.MachineList{}
	testenv.Must(t, s.List(t.Context(), sets), s.List(t.Context(), machines))
	found := map[string]string{}
	for _, o := range sets.Items {
		found[o.Name] = fmt.Sprint(o.Annotations, o.Finalizers)
	}
	for _, o := range machines.Items {
		found[o.Name] = fmt.Sprint(o.Annotations, o.Finalizers)
	}
	return found
}

// TestApplyToWhatChanged: an object is judged as it is, not as it was read.
func TestApplyToWhatChanged(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(set *clusterv1.MachineSet, m *clusterv1.Machine)
		remove bool
		want   []string
		err    string
	}{
		{
			reason: "another finalizer stays", want: []string{"more", "user"},
			change: func(set *clusterv1.MachineSet, _ *clusterv1.Machine) {
				set.Finalizers = append([]string{"more"}, set.Finalizers...)
			},
		},
		{
			reason: "it was removed meanwhile", want: []string{"user"},
			change: func(set *clusterv1.MachineSet, _ *clusterv1.Machine) { set.Finalizers = []string{"user"} },
		},
		{
			reason: "a Machine is deleted: its etcd member has to be removed first", want: []string{"user"}, remove: true,
			err: "Machine ns/m1 is being deleted",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			to, err := Target("v1.7.9")
			testenv.Must(t, err)
			s := world(t)
			objects, err := Read(t.Context(), s, nil)
			testenv.Must(t, err)
			set, m := &clusterv1.MachineSet{}, &clusterv1.Machine{}
			testenv.Must(t, s.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "s"}, set),
				s.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "m1"}, m))
			if tc.change != nil {
				tc.change(set, m)
				testenv.Must(t, s.Update(t.Context(), set))
			}
			if tc.remove {
				m.Finalizers = []string{"user"}
				testenv.Must(t, s.Update(t.Context(), m), s.Delete(t.Context(), m))
			}
			err = Apply(t.Context(), s, to, objects, HandBack(to, objects), nil)
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			testenv.Must(t, s.Get(t.Context(), client.ObjectKeyFromObject(set), set))
			if diff := cmp.Diff(tc.want, set.Finalizers); diff != "" && tc.err == "" {
				t.Errorf("finalizers (-want +got):\n%s", diff)
			}
		})
	}
}
