package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/external"
)

// ClusterIndex is the cache index for the Machines and MachinePools of a Cluster.
const ClusterIndex = "spec.clusterName"

// ByCluster computes the values of ClusterIndex.
func ByCluster(obj client.Object) []string {
	switch o := obj.(type) {
	case *clusterv1.Machine:
		return []string{o.Spec.ClusterName}
	case *clusterv1.MachinePool:
		return []string{o.Spec.ClusterName}
	}
	return nil
}

// Reader reads control planes.
type Reader struct {
	// Client reads from the cache.
	Client client.Reader
	// External reads infrastructure machines.
	External external.Reader
	// Clock is for certificates that are about to expire, and for rollouts at a certain time.
	Clock clock.PassiveClock
}

// Read reads a control plane.
func (r Reader) Read(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (*ControlPlane, error) {
	cluster, err := OwnerCluster(ctx, r.Client, kcp)
	if err != nil {
		return nil, err
	}
	if cluster == nil {
		name, known := kcp.Labels[clusterv1.ClusterNameLabel]
		if kcp.DeletionTimestamp == nil || !known {
			return &ControlPlane{KCP: kcp}, nil
		}
		// The Cluster was removed by force before its control plane. The Machines are found by the name of the Cluster.
		cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: kcp.Namespace, Name: name}}
	}
	cp := &ControlPlane{KCP: kcp, Cluster: cluster, Remediation: kcp.Annotations[controlplanev1.RemediationInProgressAnnotation]}
	machines := &clusterv1.MachineList{}
	err = r.Client.List(ctx, machines, client.InNamespace(kcp.Namespace), client.MatchingFields{ClusterIndex: cluster.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel})
	if err != nil {
		return nil, fmt.Errorf("listing the control plane Machines of Cluster %s: %w", cp.Key(), err)
	}
	spec, err := SpecOf(ctx, kcp)
	if err != nil {
		return nil, err
	}
	for i := range machines.Items {
		if err := r.add(ctx, cp, spec, &machines.Items[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(cp.Machines, func(a, b *Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return cp, nil
}

// add adds a control plane Machine, unless it has another controller.
func (r Reader) add(ctx context.Context, cp *ControlPlane, spec Spec, m *clusterv1.Machine) error {
	switch {
	case metav1.IsControlledBy(m, cp.KCP):
		if cp.KCP.DeletionTimestamp != nil {
			// Deletion must not depend on these objects: the kinds of an infrastructure provider may have been deleted.
			cp.Machines = append(cp.Machines, &Machine{Machine: m})
			return nil
		}
		read, err := r.machine(ctx, spec, m)
		if err != nil {
			return err
		}
		cp.Machines = append(cp.Machines, read)
	case metav1.GetControllerOf(m) == nil:
		cp.Orphans = append(cp.Orphans, m)
	}
	return nil
}

// machine reads the objects that a Machine was created from.
func (r Reader) machine(ctx context.Context, spec Spec, m *clusterv1.Machine) (*Machine, error) {
	read := &Machine{Machine: m}
	if ref := m.Spec.Bootstrap.ConfigRef; ref.GroupKind() == ConfigKind().GroupKind() {
		config := &bootstrapv1.KubeadmConfig{}
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}, config)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading KubeadmConfig %s/%s: %w", m.Namespace, ref.Name, err)
		}
		if err == nil {
			read.Config = config
		}
	}
	infrastructure, err := r.External.Get(ctx, &m.Spec.InfrastructureRef, m.Namespace)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the infrastructure of Machine %s/%s: %w", m.Namespace, m.Name, err)
	}
	if err == nil {
		read.Infrastructure = infrastructure
	}
	return read, read.Compare(ctx, spec, r.Clock)
}

// OwnerCluster returns the Cluster that owns the control plane, nil if there is none.
func OwnerCluster(ctx context.Context, reader client.Reader, kcp *controlplanev1.KubeadmControlPlane) (*clusterv1.Cluster, error) {
	for _, ref := range kcp.OwnerReferences {
		if (schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: clusterv1.ClusterKind}) !=
			schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() {
			continue
		}
		cluster := &clusterv1.Cluster{}
		key := client.ObjectKey{Namespace: kcp.Namespace, Name: ref.Name}
		if err := reader.Get(ctx, key, cluster); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return nil, fmt.Errorf("reading Cluster %s: %w", key, err)
		}
		return cluster, nil
	}
	return nil, nil
}
