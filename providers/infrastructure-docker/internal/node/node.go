// Package node describes the container of a machine, as kindest/node images expect it: privileged, with systemd as its main
// process, and with memory and volumes where container runtimes in it need them.
//
// It is pure. What does not belong here: requests to the container runtime, and what runs in the container.
package node

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

const (
	// APIServerPort is the port of the API server in containers of control planes.
	APIServerPort = 6443

	providerIDPrefix = "docker:////"
	imageRepository  = "kindest/node"
	// maxHostname is the longest name that is both a hostname and a label value.
	maxHostname = 63
)

// Machine is an infrastructure machine with what else its container depends on.
type Machine struct {
	Object kinds.Machine
	// Owner is the Machine, nil if it no longer exists.
	Owner *clusterv1.Machine
	// Cluster is the name of the Cluster.
	Cluster string
	// Bootstrapped is whether a client of v1beta1 has set spec.bootstrapped, which v1beta2 has not.
	Bootstrapped bool
}

// Container returns the name of the container: that in the provider ID or else, as the machine may have been created by an
// earlier version, one that is derived from the names of Cluster and Machine.
func (m Machine) Container() string {
	if name, ok := strings.CutPrefix(*m.Object.ProviderID, providerIDPrefix); ok && name != "" {
		return name
	}
	name := m.Object.Name
	if m.Owner != nil {
		name = m.Owner.Name
	}
	return identity.MachineContainer(m.Cluster, name)
}

// Hostname returns the hostname of the container, which is also the name of its Node: the name of the container, shortened if
// Linux does not allow it.
func (m Machine) Hostname() string {
	name := m.Container()
	if len(name) <= maxHostname {
		return name
	}
	return naming.WithSuffix(name, naming.Suffix(name))
}

// ProviderID returns the provider ID of the machine and its Node.
func (m Machine) ProviderID() string { return providerIDPrefix + m.Container() }

// IsControlPlane reports whether the machine belongs to a control plane.
func (m Machine) IsControlPlane() bool {
	_, ok := m.Object.Labels[clusterv1.MachineControlPlaneLabel]
	if m.Owner != nil && !ok {
		_, ok = m.Owner.Labels[clusterv1.MachineControlPlaneLabel]
	}
	return ok
}

// HadContainer reports whether the object shows that it had a container before, which was bootstrapped.
func (m Machine) HadContainer() bool {
	return *m.Object.ProviderID != "" || m.Bootstrapped || Bootstrapped(m.Object)
}

// Bootstrapped reports whether the bootstrap data has run in the container of a machine. The condition tells, so that it does not run
// again: it does not become False later.
func Bootstrapped(m kinds.Machine) bool {
	return condition.IsTrue(m.Object, dockerv1.BootstrapExecSucceededV1Beta1Condition)
}

// Claim is what the object says about its container.
func (m Machine) Claim() identity.Claim {
	role := identity.Worker
	if m.IsControlPlane() {
		role = identity.ControlPlane
	}
	return identity.Claim{Kind: m.Object.Kind, Object: m.Object.Object, Cluster: m.Cluster, Role: role, Had: m.HadContainer()}
}

// Image returns the image of the container: the custom image, or that of the Kubernetes version.
func (m Machine) Image() (string, error) {
	if m.Object.Spec.CustomImage != "" {
		return m.Object.Spec.CustomImage, nil
	}
	version := ""
	if m.Owner != nil {
		version = m.Owner.Spec.Version
	}
	if version == "" {
		return "", fmt.Errorf("the image is unknown: set spec.version of the Machine, or %s.customImage of the %s", m.Object.Path, m.Object.Kind)
	}
	if !strings.HasPrefix(version, "v") {
		version = "v" + version
	}
	return imageRepository + ":" + strings.ReplaceAll(version, "+", "_"), nil // Tags cannot have a plus sign.
}

// Describe returns the container of the machine.
func (m Machine) Describe() (engine.Container, error) {
	image, err := m.Image()
	if err != nil {
		return engine.Container{}, err
	}
	mounts, err := m.mounts()
	if err != nil {
		return engine.Container{}, err
	}
	c := engine.Container{
		Name: m.Container(), Hostname: m.Hostname(), Image: image, Labels: m.labels(), Network: identity.Network,
		TTY: true, Privileged: true, PrivateCgroups: true,
		SecurityOptions: []string{"seccomp=unconfined", "apparmor=unconfined"},
		Tmpfs:           map[string]string{"/tmp": "", "/run": ""},
		Volumes:         []string{"/var"}, // Image layers in image layers do not work.
		Mounts:          mounts,
		Restart:         engine.Once, // Nodes start with the container runtime, as those of kind.
	}
	if m.IsControlPlane() {
		c.Ports = []engine.Port{{HostIP: "127.0.0.1", ContainerPort: APIServerPort}}
	}
	return c, nil
}

func (m Machine) labels() map[string]string {
	labels := maps.Clone(m.Claim().Labels())
	if domain := m.Object.Annotations[identity.FailureDomainLabel]; domain != "" {
		labels[identity.FailureDomainLabel] = domain // Set by the controller of its pool.
	}
	if m.Owner != nil && m.Owner.Spec.FailureDomain != "" {
		labels[identity.FailureDomainLabel] = m.Owner.Spec.FailureDomain
	}
	if pool := m.Object.Labels[identity.PoolLabel]; pool != "" {
		labels[identity.PoolLabel] = pool
	}
	return labels
}

// mounts returns the mounts: the kernel modules of the host, which kubeadm and kube-proxy load from, and those of the user.
func (m Machine) mounts() ([]engine.Mount, error) {
	mounts := []engine.Mount{{HostPath: "/lib/modules", ContainerPath: "/lib/modules", ReadOnly: true}}
	for i, in := range m.Object.Spec.ExtraMounts {
		for field, value := range map[string]string{"hostPath": in.HostPath, "containerPath": in.ContainerPath} {
			if !path.IsAbs(value) {
				return nil, fmt.Errorf("%s.extraMounts[%d].%s is %q: it must be an absolute path", m.Object.Path, i, field, value)
			}
		}
		mounts = append(mounts, engine.Mount{HostPath: in.HostPath, ContainerPath: in.ContainerPath, ReadOnly: ptr.Deref(in.Readonly, false)})
	}
	return mounts, nil
}

// Addresses returns the addresses of a running container.
func (m Machine) Addresses(state *engine.State) []clusterv1.MachineAddress {
	addresses := []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: m.Hostname()}}
	for _, t := range []clusterv1.MachineAddressType{clusterv1.MachineInternalIP, clusterv1.MachineExternalIP} {
		for _, ip := range []string{state.IPv4, state.IPv6} {
			if ip != "" {
				addresses = append(addresses, clusterv1.MachineAddress{Type: t, Address: ip})
			}
		}
	}
	return addresses
}
