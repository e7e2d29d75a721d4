package journey

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const (
	contractV1Beta1 = "v1beta1"
	contractV1Beta2 = "v1beta2"
)

// mixture is the contract in which the kinds of each role are.
type mixture struct{ infrastructure, bootstrap, controlPlane string }

// mixtures returns all of them.
func mixtures() []mixture {
	var all []mixture
	contracts := []string{contractV1Beta1, contractV1Beta2}
	for _, infrastructure := range contracts {
		for _, bootstrap := range contracts {
			for _, controlPlane := range contracts {
				all = append(all, mixture{infrastructure, bootstrap, controlPlane})
			}
		}
	}
	return all
}

// show labels the CustomResourceDefinitions of a group, so that its kinds are in one contract only, in these versions of their API.
func (m *Management) show(t *testing.T, group, contract string, versions map[string]string) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	testenv.Must(t, m.Client.List(t.Context(), list))
	for i := range list.Items {
		definition := &list.Items[i]
		if _, suffix, _ := strings.Cut(definition.GetName(), "."); suffix != group {
			continue
		}
		labels := map[string]any{"cluster.x-k8s.io/" + contractV1Beta1: nil, "cluster.x-k8s.io/" + contractV1Beta2: nil}
		labels["cluster.x-k8s.io/"+contract] = versions[contract]
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
		testenv.Must(t, err)
		testenv.Must(t, m.Client.Patch(t.Context(), definition, client.RawPatch(types.MergePatchType, patch)))
	}
}

// refersTo is true when references are in these versions of the groups of control plane and bootstrap provider: v1beta1 has them as the
// labels say.
func refersTo(m mixture) Condition {
	return func(p *Snapshot) error {
		if ref := p.Cluster.Spec.ControlPlaneRef; ref == nil || ref.APIVersion != "controlplane.cluster.x-k8s.io/"+m.controlPlane {
			return fmt.Errorf("the Cluster refers to the control plane %+v, want %s", ref, m.controlPlane)
		}
		for i := range p.Machines.Items {
			machine := &p.Machines.Items[i]
			if ref := machine.Spec.Bootstrap.ConfigRef; ref == nil || ref.APIVersion != "bootstrap.cluster.x-k8s.io/"+m.bootstrap {
				return fmt.Errorf("Machine %s refers to the configuration %+v, want %s", machine.Name, ref, m.bootstrap)
			}
		}
		return nil
	}
}

// inPairs is true for half of all mixtures, in which any two roles have all pairs of contracts.
func (m mixture) inPairs() bool {
	newer := 0
	for _, contract := range []string{m.infrastructure, m.bootstrap, m.controlPlane} {
		if contract == contractV1Beta2 {
			newer++
		}
	}
	return newer%2 == 1
}

// TestMixedContracts creates, upgrades, scales and deletes a Cluster in each mixture of contracts: of infrastructure, bootstrap and control
// plane provider; half of them in soak tests only. What the in-memory provider shows is in one version of its API; both contracts have fields
// of their own in it.
func TestMixedContracts(t *testing.T) {
	t.Parallel()
	s := NewStandalone(t, shared.Management(t).Tools)
	testenv.Must(t, s.tools.install(t.Context(), s.kubeconfig()))
	management := s.Management()
	both := map[string]string{contractV1Beta1: contractV1Beta1, contractV1Beta2: contractV1Beta2}
	inMemory := map[string]string{contractV1Beta1: "v1alpha1", contractV1Beta2: "v1alpha1"}
	for _, m := range mixtures() {
		t.Run(fmt.Sprintf("%s %s %s", m.infrastructure, m.bootstrap, m.controlPlane), func(t *testing.T) {
			if !m.inPairs() {
				testenv.Soak(t)
			}
			management.show(t, "infrastructure.cluster.x-k8s.io", m.infrastructure, inMemory)
			management.show(t, "bootstrap.cluster.x-k8s.io", m.bootstrap, both)
			management.show(t, "controlplane.cluster.x-k8s.io", m.controlPlane, both)
			w := management.World(t)
			class := w.Class(w.Tools.OlderTemplate()) // Its references are in a version that all mixtures serve under the contract v1beta1.
			c := w.Subject(NewCluster("c", class).Version(older).Variable("startupDuration", "100ms").Workers(1).Build())
			c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), Version(older), refersTo(m))
			before := c.Snapshot()
			c.Change(SetVersion(newer))
			c.Change(SetWorkers(2))
			c.Eventually("it is upgraded and scaled", Ready, ControlPlanes(1), Workers(2), Version(newer), refersTo(m), c.WorkloadMatches,
				c.ExplainsNothing, NewMachines((*Snapshot).ControlPlane, before), NewMachines((*Snapshot).Workers, before))
			c.Gone()
		})
	}
}
