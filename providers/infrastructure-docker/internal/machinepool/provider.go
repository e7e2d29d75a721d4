// Package machinepool declares DockerMachinePools: groups of equal machines, each a container. What controls them is
// sdk/machinepool, and what makes a machine a container is the controller of DockerMachines.
package machinepool

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/node"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// Kind is the kind of the pools.
const Kind = "DockerMachinePool"

// ordinalAnnotation is on pools and machines: see machinepool.Annotations.
const ordinalAnnotation = "docker.cluster.x-k8s.io/pool-ordinal"

// Provider returns the declaration of DockerMachinePools.
func Provider() machinepool.Provider[*dockerv1.DockerMachinePool, *dockerv1.DockerMachine] {
	return machinepool.Provider[*dockerv1.DockerMachinePool, *dockerv1.DockerMachine]{
		Name:        "dockermachinepool",
		Pool:        dockerv1.GroupVersion.WithKind(Kind),
		Machine:     dockerv1.GroupVersion.WithKind(node.Kind),
		NewPool:     func() *dockerv1.DockerMachinePool { return &dockerv1.DockerMachinePool{} },
		NewPools:    func() client.ObjectList { return &dockerv1.DockerMachinePoolList{} },
		NewMachines: func() client.ObjectList { return &dockerv1.DockerMachineList{} },
		Finalizer:   dockerv1.MachinePoolFinalizer,
		Annotations: machinepool.Annotations{
			Ordinal: ordinalAnnotation, Domain: identity.FailureDomainLabel, Data: "docker.cluster.x-k8s.io/bootstrap-data",
		},
		Fields: func(p *dockerv1.DockerMachinePool) machinepool.Fields {
			return machinepool.Fields{
				ProviderIDs: &p.Spec.ProviderIDList, MachineKind: &p.Status.InfrastructureMachineKind,
				Replicas: &p.Status.Replicas, Ready: &p.Status.Ready, Provisioned: &p.Status.Initialization.Provisioned,
				ObservedGeneration: &p.Status.ObservedGeneration,
			}
		},
		Claim: func(p *dockerv1.DockerMachinePool, cluster *clusterv1.Cluster) {
			p.Spec.ProviderID = "docker:////" + cluster.Name + "-dmp-" + p.Name
		},
		Report:      report,
		MachineName: nameOf,
		NewMachine:  newMachine,
		Observe: func(m *dockerv1.DockerMachine) machinepool.Observation {
			return machinepool.Observation{ProviderID: m.Spec.ProviderID, Joined: joined(m)}
		},
		Outdated: outdated,
		SameTemplate: func(a, b *dockerv1.DockerMachinePool) bool {
			return equality.Semantic.DeepEqual(a.Spec.Template, b.Spec.Template)
		},
		Changed: func(before, after *dockerv1.DockerMachine) bool {
			return !equality.Semantic.DeepEqual(before.Status.Addresses, after.Status.Addresses)
		},
	}
}

// nameOf returns the name of a DockerMachine, "worker-" and six characters, from its ordinal.
func nameOf(pool *dockerv1.DockerMachinePool, ordinal int) string {
	uid, number := string(pool.UID), strconv.Itoa(ordinal)
	return "worker-" + naming.Suffix(uid, number) + naming.Suffix(uid, number, "")[:1]
}

func newMachine(pool *dockerv1.DockerMachinePool) *dockerv1.DockerMachine {
	template := pool.Spec.Template.DeepCopy()
	obj := &dockerv1.DockerMachine{}
	obj.Spec.CustomImage, obj.Spec.PreLoadImages, obj.Spec.ExtraMounts = template.CustomImage, template.PreLoadImages, template.ExtraMounts
	obj.Labels = map[string]string{identity.PoolLabel: naming.LabelValue(pool.Name)}
	return obj
}

// joined reports whether the Node of a machine joined the cluster, and its container was not removed since.
func joined(m *dockerv1.DockerMachine) bool {
	container := condition.Get(m, dockerv1.ContainerProvisionedV1Beta1Condition)
	return ptr.Deref(m.Status.Initialization.Provisioned, false) &&
		(container == nil || container.Reason != dockerv1.ContainerDeletedV1Beta1Reason)
}

// outdated returns why a machine must be replaced; empty if it is up to date.
//
// Cluster API v1.7 did not record all of the template in the DockerMachines that it created. Of these, only the image is compared, so
// that an upgrade of the management cluster replaces no machines.
func outdated(pool *dockerv1.DockerMachinePool, m *dockerv1.DockerMachine, recorded bool) string {
	template := &pool.Spec.Template
	switch {
	case m.Spec.CustomImage != template.CustomImage:
		return fmt.Sprintf("its image is %q instead of %q", m.Spec.CustomImage, template.CustomImage)
	case !recorded:
		return ""
	case !equality.Semantic.DeepEqual(m.Spec.PreLoadImages, template.PreLoadImages):
		return "spec.template.preLoadImages of the pool has changed"
	case !slices.EqualFunc(m.Spec.ExtraMounts, template.ExtraMounts, sameMount):
		return "spec.template.extraMounts of the pool has changed"
	}
	return ""
}

// sameMount reports whether two mounts are the same. One that is not read-only is also one that does not say so: v1beta1 cannot tell.
func sameMount(a, b dockerv1.Mount) bool {
	return a.HostPath == b.HostPath && a.ContainerPath == b.ContainerPath && ptr.Deref(a.Readonly, false) == ptr.Deref(b.Readonly, false)
}

// report sets the instances in the status.
func report(pool *dockerv1.DockerMachinePool, members []machinepool.Member[*dockerv1.DockerMachine]) {
	pool.Status.Instances = nil
	for _, m := range members {
		out := dockerv1.DockerMachinePoolInstanceStatus{
			Addresses: m.Object.Status.Addresses, Ready: m.Joined, Bootstrapped: node.Bootstrapped(m.Object),
			InstanceName: node.Machine{Object: m.Object, Owner: m.Machine, Cluster: pool.Labels[clusterv1.ClusterNameLabel]}.Container(),
		}
		if id := m.Object.Spec.ProviderID; id != "" {
			out.ProviderID = ptr.To(id)
		}
		if m.Machine != nil && m.Machine.Spec.Version != "" {
			out.Version = ptr.To(m.Machine.Spec.Version)
		}
		pool.Status.Instances = append(pool.Status.Instances, out)
	}
}
