package controlplane

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// The budget is the number of versions of each object until a control plane with one Machine is ready, including creation by
// the user and the writes of the test in place of the Machine controller.
func TestWritesOfOneMachine(t *testing.T) {
	j := newJourney(t)
	budget := []struct {
		list client.ObjectList
		kind string
		most int
	}{
		{&controlplanev1.KubeadmControlPlaneList{}, "KubeadmControlPlane", 5}, // created, finalizer, 3 statuses
		{&clusterv1.MachineList{}, "Machine", 3},                              // created, Node found, health
		{&bootstrapv1.KubeadmConfigList{}, "KubeadmConfig", 2},                // created, expiry of certificates
	}
	var watches []watch.Interface
	for _, b := range budget {
		w, err := j.Watch(t.Context(), b.list, client.InNamespace(j.ns))
		j.must(err)
		watches = append(watches, w)
	}
	j.apply(1)
	j.waitMachines(1)
	j.bootAll()
	j.waitReady(1)
	config := &bootstrapv1.KubeadmConfig{}
	m := j.machines()[0]
	j.eventually("the expiry being recorded", func() (bool, string) {
		j.must(j.Get(t.Context(), client.ObjectKeyFromObject(&m), config))
		return hasExpiry(config.Annotations), "it is not"
	})
	for i, b := range budget {
		watches[i].Stop()
		var versions []string
		for event := range watches[i].ResultChan() {
			raw, err := json.Marshal(event.Object)
			j.must(err)
			versions = append(versions, string(raw))
		}
		if len(versions) > b.most {
			t.Errorf("%s had %d versions, the budget is %d:", b.kind, len(versions), b.most)
			for _, v := range versions {
				t.Log(v)
			}
		}
	}
}

func TestASteadyControlPlaneCostsNothing(t *testing.T) {
	j := newJourney(t)
	j.apply(1)
	j.awaitRollout(1, anyMachine)
	before := j.versions()
	for range 3 {
		j.workload.Mu.Lock()
		looked := j.workload.Observed
		j.workload.Mu.Unlock()
		j.workload.Changed()
		j.eventually("another reconcile", func() (bool, string) {
			j.workload.Mu.Lock()
			defer j.workload.Mu.Unlock()
			return j.workload.Observed > looked, "there was none"
		})
	}
	if diff := cmp.Diff(before, j.versions()); diff != "" {
		t.Errorf("objects were written (-before +after):\n%s", diff)
	}
}

// versions returns the resource versions of all objects of a control plane.
func (j *journey) versions() map[string]string {
	j.Helper()
	all := map[string]string{}
	machines := &unstructured.UnstructuredList{}
	machines.SetGroupVersionKind(schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1", Kind: "InMemoryMachineList"})
	for _, list := range []client.ObjectList{
		&controlplanev1.KubeadmControlPlaneList{}, &clusterv1.MachineList{}, &bootstrapv1.KubeadmConfigList{}, &corev1.SecretList{}, machines,
	} {
		j.must(j.List(j.Context(), list, client.InNamespace(j.ns)))
		j.must(meta.EachListItem(list, func(o runtime.Object) error {
			obj, err := meta.Accessor(o)
			if err == nil {
				all[fmt.Sprintf("%T %s", o, obj.GetName())] = obj.GetResourceVersion()
			}
			return err
		}))
	}
	return all
}
