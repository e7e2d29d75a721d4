// Package machinepool declares InMemoryMachinePools: groups of equal simulated machines. What controls them is
// sdk/machinepool, and what simulates a machine is the controller of InMemoryMachines.
package machinepool

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// Annotations of pools and machines: see machinepool.Annotations.
const (
	ordinalAnnotation = "inmemorymachinepool.infrastructure.cluster.x-k8s.io/ordinal"
	dataAnnotation    = "inmemorymachinepool.infrastructure.cluster.x-k8s.io/bootstrap-data"
)

// Provider returns the declaration of InMemoryMachinePools.
func Provider() machinepool.Provider[*inmemoryv1.InMemoryMachinePool, *inmemoryv1.InMemoryMachine] {
	return machinepool.Provider[*inmemoryv1.InMemoryMachinePool, *inmemoryv1.InMemoryMachine]{
		Name:        "inmemorymachinepool",
		Pool:        inmemoryv1.GroupVersion.WithKind("InMemoryMachinePool"),
		Machine:     inmemoryv1.GroupVersion.WithKind("InMemoryMachine"),
		NewPool:     func() *inmemoryv1.InMemoryMachinePool { return &inmemoryv1.InMemoryMachinePool{} },
		NewPools:    func() client.ObjectList { return &inmemoryv1.InMemoryMachinePoolList{} },
		NewMachines: func() client.ObjectList { return &inmemoryv1.InMemoryMachineList{} },
		Finalizer:   inmemoryv1.MachinePoolFinalizer,
		Annotations: machinepool.Annotations{Ordinal: ordinalAnnotation, Data: dataAnnotation},
		Fields: func(p *inmemoryv1.InMemoryMachinePool) machinepool.Fields {
			return machinepool.Fields{
				ProviderIDs: &p.Spec.ProviderIDList, MachineKind: &p.Status.InfrastructureMachineKind,
				Replicas: &p.Status.Replicas, Ready: &p.Status.Ready, ObservedGeneration: &p.Status.ObservedGeneration,
				Provisioned: &p.Status.Initialization.Provisioned,
			}
		},
		Domain:   func(m *inmemoryv1.InMemoryMachine) *string { return &m.Spec.FailureDomain },
		Replicas: func(p *inmemoryv1.InMemoryMachinePool) *int32 { return p.Spec.Replicas },
		MachineName: func(p *inmemoryv1.InMemoryMachinePool, ordinal int) string {
			uid := string(p.UID) + p.Annotations[clusterv1.RestoredAnnotation]
			return naming.WithSuffix(p.Name, naming.Suffix(uid, strconv.Itoa(ordinal)))
		},
		NewMachine: func(p *inmemoryv1.InMemoryMachinePool) *inmemoryv1.InMemoryMachine {
			return &inmemoryv1.InMemoryMachine{Spec: inmemoryv1.InMemoryMachineSpec{Behaviour: p.Spec.Template.Behaviour.DeepCopy()}}
		},
		Observe: observe,
		Outdated: func(p *inmemoryv1.InMemoryMachinePool, m *inmemoryv1.InMemoryMachine, _ bool) string {
			if equality.Semantic.DeepEqual(p.Spec.Template.Behaviour, m.Spec.Behaviour) {
				return ""
			}
			return "spec.template.behaviour of the pool has changed"
		},
		SameTemplate: func(a, b *inmemoryv1.InMemoryMachinePool) bool {
			return equality.Semantic.DeepEqual(a.Spec.Template, b.Spec.Template)
		},
	}
}

// observe returns the state of a machine. It has joined once kubeadm succeeded on it.
func observe(m *inmemoryv1.InMemoryMachine) machinepool.Observation {
	return machinepool.Observation{
		ProviderID: ptr.Deref(m.Spec.ProviderID, ""),
		Joined:     m.Status.Ready && condition.IsTrue(m, inmemoryv1.NodeProvisionedCondition),
	}
}
