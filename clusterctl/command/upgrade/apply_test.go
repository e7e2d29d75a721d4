package upgrade

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// writes returns the requests that change something, without those for the Lease.
func writes(w *testenv.Wire) []string {
	var list []string
	for _, r := range w.Log() {
		if !strings.HasPrefix(r, "GET ") && !strings.Contains(r, "dryRun=All") && !strings.Contains(r, "/leases") {
			list = append(list, r)
		}
	}
	return list
}

func TestChangesNothing(t *testing.T) {
	w := newWorld(t)
	foreign := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "up-new"}}
	testenv.Must(t, w.env.Client.Create(t.Context(), foreign))
	t.Cleanup(func() { testenv.Must(t, w.env.Client.Delete(context.WithoutCancel(t.Context()), foreign)) })
	for _, tc := range []struct {
		reason, repository, version string
		want                        string
	}{
		{"A definition must have the version in which objects are stored.", w.repository, incompatibleVersion,
			"cluster-api v1.3.0: CustomResourceDefinition things.up.example stores objects in version v1, which the new one does not have: first upgrade the provider"},
		{"An object of users is not replaced.", w.stable, newVersion,
			"cluster-api v1.1.0: ValidatingWebhookConfiguration up-new exists already, and is of no provider: if it is of this one, set its label: kubectl label"},
		{"A version must exist.", w.gone, newVersion, "cluster-api has no version v1.1.0"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			requests := all()
			_, err := w.apply(requests, tc.repository, tc.version)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("want an error with %q, got %v", tc.want, err)
			}
			if diff := cmp.Diff([]string(nil), writes(requests)); diff != "" {
				t.Errorf("nothing must be written: -want +got:\n%s", diff)
			}
		})
	}
}

// TestStoredVersions: objects that are stored in a version that the new definition does not have are stored again, and stay.
func TestStoredVersions(t *testing.T) {
	w := newWorld(t)
	ends := w.ends()
	w.storedVersions("v1alpha1", "v1")
	before := w.mine()
	if out, err := w.apply(all(), w.repository, newVersion); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.check("after the migration", ends[newVersion])
	if diff := cmp.Diff([]string{"v1"}, w.storedVersions()); diff != "" {
		t.Errorf("status.storedVersions: -want +got:\n%s", diff)
	}
	if after := w.mine(); after.GetUID() != before.GetUID() {
		t.Error("the object of a user was replaced")
	}
	w.back(all(), ends)
}

// TestPutsBack: a version that does not start leaves everything as it was, with one error that says why.
func TestPutsBack(t *testing.T) {
	w := newWorld(t)
	ends := w.ends()
	out, err := w.apply(all(), w.repository, brokenVersion)
	if err == nil {
		t.Fatalf("want an error, got:\n%s", out)
	}
	for _, want := range []string{"cluster-api was not upgraded to v1.2.0: Deployment up-system/up-controller ", `image "registry.example/up:v1.2.0"`, ": rolled back to v1.0.0"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got: %v", want, err)
		}
	}
	w.check("after the failure", ends[oldVersion])
	if _, err := w.apply(all(), w.repository, newVersion); err != nil {
		t.Errorf("a version that starts can be installed afterwards: %v", err)
	}
	w.check("after another version", ends[newVersion])
	w.back(all(), ends)
}

// TestAgain: the installed version again replaces what differs from it, and writes nothing if nothing does.
func TestAgain(t *testing.T) {
	w := newWorld(t)
	ends := w.ends()
	w.patch("v1", "ConfigMap", "up-config", `{"data":{"a":"changed"}}`)
	w.back(all(), ends)
	versions := w.versions()
	w.back(all(), ends)
	if diff := cmp.Diff(versions, w.versions()); diff != "" {
		t.Errorf("nothing must change: -before +after:\n%s", diff)
	}
}

// TestContract upgrades to the latest version of a contract, once.
func TestContract(t *testing.T) {
	w := newWorld(t)
	ends := w.ends()
	latest := choose.UpgradeRequest{Contract: "v1beta1"}
	if out, err := w.request(all(), w.stable, latest); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.check("after the upgrade", ends[newVersion])
	again := all()
	out, err := w.request(again, w.stable, latest)
	if err != nil || !strings.Contains(out, "All providers are up to date") || len(writes(again)) > 0 {
		t.Errorf("want nothing to do, got %v, %v\n%s", writes(again), err, out)
	}
	// The journal of an upgrade that was killed before it was completed is found by its version alone.
	w.back(all(), ends)
	if _, err := w.request(untilCutover(), w.stable, latest); err == nil {
		t.Fatal("it must be killed")
	}
	if out, err := w.request(all(), w.stable, latest); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.check("after the interruption", ends[newVersion])
	w.back(all(), ends)
}

// TestInterrupted: an upgrade can be rolled back although the repository no longer has the previous version.
func TestInterrupted(t *testing.T) {
	w := newWorld(t)
	ends := w.ends()
	if _, err := w.apply(untilCutover(), w.repository, newVersion); err == nil {
		t.Fatal("it must be killed")
	}
	out, err := w.apply(all(), t.TempDir(), oldVersion)
	if err != nil || !strings.Contains(out, "cluster-api was rolled back to v1.0.0") {
		t.Errorf("%v\n%s", err, out)
	}
	w.check("after the previous version", ends[oldVersion])
}

// TestTwoAtOnce: of two processes with the same upgrade, the second waits for the first. Without the Lease, the failure of one,
// such as a conflict, would roll back what the other upgrades.
func TestTwoAtOnce(t *testing.T) {
	w := newWorld(t)
	ends := w.ends()
	// The first has the Lease when it writes CustomResourceDefinitions, and goes on when the second has found the Lease taken
	// and looks at it again.
	upgrading, found := make(chan struct{}), make(chan struct{})
	var arrives sync.Once
	first, second := all(), all()
	first.Before = func(request string) {
		if strings.HasPrefix(request, "PUT ") && strings.Contains(request, "/customresourcedefinitions/") {
			arrives.Do(func() {
				close(upgrading)
				<-found
			})
		}
	}
	looks := 0 // leader election asks for the Lease from one goroutine
	second.Before = func(request string) {
		if strings.Contains(request, "/leases/") {
			if looks++; looks == 2 {
				close(found)
			}
		}
	}
	var processes sync.WaitGroup
	processes.Go(func() {
		defer arrives.Do(func() { close(upgrading) }) // if it failed before
		if out, err := w.apply(first, w.repository, newVersion); err != nil {
			t.Errorf("the first process: %v\n%s", err, out)
		}
	})
	<-upgrading
	out, err := w.apply(second, w.repository, newVersion)
	processes.Wait()
	if err != nil || strings.Count(out, "another clusterctl that upgrades providers and has Lease kube-system/clusterctl-upgrade: process ") != 1 {
		t.Errorf("the second process must wait for the first: %v\n%s", err, out)
	}
	w.check("after both", ends[newVersion])
	leases := &coordinationv1.LeaseList{}
	testenv.Must(t, w.env.Client.List(t.Context(), leases))
	for _, l := range leases.Items {
		t.Errorf("Lease %s is left", l.Name)
	}
	w.back(all(), ends)
}

func (w *world) mine() *unstructured.Unstructured {
	w.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("up.example/v1")
	o.SetKind("Thing")
	testenv.Must(w.T, w.env.Client.Get(w.Context(), client.ObjectKey{Name: "mine"}, o))
	return o
}

// versions returns the resource versions of Deployments and webhook configurations.
func (w *world) versions() map[string]string {
	w.Helper()
	found := map[string]string{}
	for kind, apiVersion := range map[string]string{"Deployment": "apps/v1", "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1", "ConfigMap": "v1"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(apiVersion)
		list.SetKind(kind + "List")
		testenv.Must(w.T, w.env.Client.List(w.Context(), list))
		for _, o := range list.Items {
			if strings.HasPrefix(o.GetName(), "up-") {
				found[kind+" "+o.GetName()] = o.GetResourceVersion()
			}
		}
	}
	return found
}
