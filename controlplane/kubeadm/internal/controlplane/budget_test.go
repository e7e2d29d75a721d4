package controlplane

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Every write is money: these are the versions that a control plane of one Machine goes through until it is ready,
// creation by the user and the writes that the test makes in the Machine controller's place included.
func TestWritesOfOneMachine(t *testing.T) {
	j := newJourney(t)
	budget := []struct {
		list client.ObjectList
		kind string
		most int
	}{
		{&controlplanev1.KubeadmControlPlaneList{}, "KubeadmControlPlane", 6}, // created, finalizer, 4 statuses
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
		return recorded(config.Annotations), "it is not"
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
