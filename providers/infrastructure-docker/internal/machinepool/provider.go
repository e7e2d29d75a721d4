// Package machinepool declares DockerMachinePools and DevMachinePools: groups of equal machines, each a container. What controls them is
// sdk/machinepool, and what makes a machine a container is the controller of the machines.
package machinepool

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/node"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Kind is the kind of the pools of DockerMachines.
const Kind = "DockerMachinePool"

// DevKind is the kind of the pools of DevMachines.
const DevKind = "DevMachinePool"

// ordinalAnnotation is on pools and machines: see machinepool.Annotations.
const ordinalAnnotation = "docker.cluster.x-k8s.io/pool-ordinal"

// Provider returns the declaration of DockerMachinePools.
func Provider() machinepool.Provider[*dockerv1.DockerMachinePool, *dockerv1.DockerMachine] {
	provider := declare(pools[*dockerv1.DockerMachinePool, *dockerv1.DockerMachine]{
		templatePath: "spec.template",
		template: func(p *dockerv1.DockerMachinePool) *dockerv1.DockerMachinePoolMachineTemplate {
			return &p.Spec.Template
		},
		providerID: func(p *dockerv1.DockerMachinePool) *string { return &p.Spec.ProviderID },
		instances:  func(p *dockerv1.DockerMachinePool, all []instance) { p.Status.Instances = all },
		newMachine: func() *dockerv1.DockerMachine { return &dockerv1.DockerMachine{} },
		of:         kinds.OfDockerMachine,
	})
	set := kinds.Docker()
	provider.Name = "dockermachinepool"
	provider.Pool, provider.Machine = dockerv1.GroupVersion.WithKind(Kind), dockerv1.GroupVersion.WithKind(set.MachineKind)
	provider.NewPool = func() *dockerv1.DockerMachinePool { return &dockerv1.DockerMachinePool{} }
	provider.NewPools = func() client.ObjectList { return &dockerv1.DockerMachinePoolList{} }
	provider.NewMachines = set.Machines
	provider.Finalizer = dockerv1.MachinePoolFinalizer
	provider.Fields = func(p *dockerv1.DockerMachinePool) machinepool.Fields {
		return machinepool.Fields{
			ProviderIDs: &p.Spec.ProviderIDList, MachineKind: &p.Status.InfrastructureMachineKind,
			Replicas: &p.Status.Replicas, Ready: &p.Status.Ready, Provisioned: &p.Status.Initialization.Provisioned,
			ObservedGeneration: &p.Status.ObservedGeneration,
		}
	}
	return provider
}

// DevProvider returns the declaration of DevMachinePools. Their only backend is docker.
func DevProvider() machinepool.Provider[*dockerv1.DevMachinePool, *dockerv1.DevMachine] {
	provider := declare(pools[*dockerv1.DevMachinePool, *dockerv1.DevMachine]{
		templatePath: "spec.backend.docker",
		template: func(p *dockerv1.DevMachinePool) *dockerv1.DockerMachinePoolMachineTemplate {
			return cmp.Or(p.Spec.Backend.Docker, &dockerv1.DockerMachinePoolMachineTemplate{})
		},
		providerID: func(p *dockerv1.DevMachinePool) *string { return &p.Spec.ProviderID },
		instances: func(p *dockerv1.DevMachinePool, all []instance) {
			p.Status.Instances = nil
			for _, i := range all {
				p.Status.Instances = append(p.Status.Instances, dockerv1.DevMachinePoolInstanceStatus{
					Addresses: i.Addresses, InstanceName: i.InstanceName, ProviderID: i.ProviderID, Version: i.Version, Ready: i.Ready,
				})
			}
		},
		newMachine: func() *dockerv1.DevMachine {
			backend := dockerv1.DevMachineBackendSpec{Docker: &dockerv1.DockerMachineBackendSpec{}}
			return &dockerv1.DevMachine{Spec: dockerv1.DevMachineSpec{Backend: backend}}
		},
		of: devMachine,
	})
	set := kinds.Dev()
	provider.Name = "devmachinepool"
	provider.Pool, provider.Machine = dockerv1.GroupVersion.WithKind(DevKind), dockerv1.GroupVersion.WithKind(set.MachineKind)
	provider.NewPool = func() *dockerv1.DevMachinePool { return &dockerv1.DevMachinePool{} }
	provider.NewPools = func() client.ObjectList { return &dockerv1.DevMachinePoolList{} }
	provider.NewMachines = set.Machines
	provider.Finalizer = dockerv1.DevMachinePoolFinalizer
	provider.Fields = func(p *dockerv1.DevMachinePool) machinepool.Fields {
		return machinepool.Fields{
			ProviderIDs: &p.Spec.ProviderIDList, MachineKind: &p.Status.InfrastructureMachineKind,
			Replicas: &p.Status.Replicas, Ready: &p.Status.Ready, Provisioned: &p.Status.Initialization.Provisioned,
			ObservedGeneration: &p.Status.ObservedGeneration,
		}
	}
	return provider
}

// devMachine returns the parts of a DevMachine of a pool. Users can give it another backend: it then differs from the template.
func devMachine(m *dockerv1.DevMachine) kinds.Machine {
	out := kinds.OfDevMachine(m)
	out.Spec = cmp.Or(out.Spec, &dockerv1.DockerMachineBackendSpec{})
	return out
}

// instance is the status of an instance.
type instance = dockerv1.DockerMachinePoolInstanceStatus

// pools is what tells kinds of pools apart.
type pools[P, M step.Object] struct {
	// template returns the template of a pool, and templatePath is where it is.
	template     func(P) *dockerv1.DockerMachinePoolMachineTemplate
	templatePath string
	// providerID returns spec.providerID of a pool, and instances sets status.instances.
	providerID func(P) *string
	instances  func(P, []instance)
	// newMachine returns an empty machine, and of the parts of a machine.
	newMachine func() M
	of         func(M) kinds.Machine
}

// declare returns what all kinds of pools have in common.
func declare[P, M step.Object](k pools[P, M]) machinepool.Provider[P, M] {
	return machinepool.Provider[P, M]{
		Annotations: machinepool.Annotations{
			Ordinal: ordinalAnnotation, Domain: identity.FailureDomainLabel, Data: "docker.cluster.x-k8s.io/bootstrap-data",
		},
		Claim: func(p P, cluster *clusterv1.Cluster) {
			*k.providerID(p) = "docker:////" + cluster.Name + "-dmp-" + p.GetName()
		},
		Report:      k.report,
		MachineName: nameOf[P],
		NewMachine:  k.machine,
		Observe: func(m M) machinepool.Observation {
			of := k.of(m)
			return machinepool.Observation{ProviderID: *of.ProviderID, Joined: joined(of)}
		},
		Outdated: func(p P, m M, recorded bool) string {
			return outdated(k.template(p), k.templatePath, k.of(m).Spec, recorded)
		},
		SameTemplate: func(a, b P) bool {
			return equality.Semantic.DeepEqual(k.template(a), k.template(b))
		},
		Changed: func(before, after M) bool {
			return !equality.Semantic.DeepEqual(k.of(before).Addresses, k.of(after).Addresses)
		},
	}
}

// nameOf returns the name of a machine, "worker-" and six characters, from its ordinal.
func nameOf[P step.Object](pool P, ordinal int) string {
	uid, number := string(pool.GetUID())+pool.GetAnnotations()[clusterv1.RestoredAnnotation], strconv.Itoa(ordinal)
	return "worker-" + naming.Suffix(uid, number) + naming.Suffix(uid, number, "")[:1]
}

// machine returns a new machine of a pool.
func (k pools[P, M]) machine(pool P) M {
	template := k.template(pool).DeepCopy()
	obj := k.newMachine()
	spec := k.of(obj).Spec
	spec.CustomImage, spec.PreLoadImages, spec.ExtraMounts = template.CustomImage, template.PreLoadImages, template.ExtraMounts
	obj.SetLabels(map[string]string{identity.PoolLabel: naming.LabelValue(pool.GetName())})
	return obj
}

// joined reports whether the Node of a machine joined the cluster, and its container was not removed since.
func joined(m kinds.Machine) bool {
	container := condition.Get(m.Object, dockerv1.ContainerProvisionedV1Beta1Condition)
	return ptr.Deref(m.Initialization.Provisioned, false) &&
		(container == nil || container.Reason != dockerv1.ContainerDeletedV1Beta1Reason)
}

// outdated returns why a machine must be replaced; empty if it is up to date. path is where the template is in the pool.
//
// Cluster API v1.7 did not record all of the template in the DockerMachines that it created. Of these, only the image is compared, so
// that an upgrade of the management cluster replaces no machines.
func outdated(
	template *dockerv1.DockerMachinePoolMachineTemplate, path string, m *dockerv1.DockerMachineBackendSpec, recorded bool,
) string {
	switch {
	case m.CustomImage != template.CustomImage:
		return fmt.Sprintf("its image is %q instead of %q", m.CustomImage, template.CustomImage)
	case !recorded:
		return ""
	case !equality.Semantic.DeepEqual(m.PreLoadImages, template.PreLoadImages):
		return path + ".preLoadImages of the pool has changed"
	case !slices.EqualFunc(m.ExtraMounts, template.ExtraMounts, sameMount):
		return path + ".extraMounts of the pool has changed"
	}
	return ""
}

// sameMount reports whether two mounts are the same. One that is not read-only is also one that does not say so: v1beta1 cannot tell.
func sameMount(a, b dockerv1.Mount) bool {
	return a.HostPath == b.HostPath && a.ContainerPath == b.ContainerPath && ptr.Deref(a.Readonly, false) == ptr.Deref(b.Readonly, false)
}

// report sets the instances in the status.
func (k pools[P, M]) report(pool P, members []machinepool.Member[M]) {
	var all []instance
	for _, m := range members {
		of := k.of(m.Object)
		out := instance{
			Addresses: *of.Addresses, Ready: m.Joined, Bootstrapped: node.Bootstrapped(of),
			InstanceName: node.Machine{Object: of, Owner: m.Machine, Cluster: pool.GetLabels()[clusterv1.ClusterNameLabel]}.Container(),
		}
		if id := *of.ProviderID; id != "" {
			out.ProviderID = ptr.To(id)
		}
		if m.Machine != nil && m.Machine.Spec.Version != "" {
			out.Version = ptr.To(m.Machine.Spec.Version)
		}
		all = append(all, out)
	}
	k.instances(pool, all)
}
