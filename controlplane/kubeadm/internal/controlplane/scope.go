package controlplane

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/outdated"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// ClusterIndex is the cache index that finds the Machines and MachinePools of a Cluster.
const ClusterIndex = "spec.clusterName"

// scope is one reconcile of one control plane.
type scope struct {
	kcp *controlplanev1.KubeadmControlPlane
	// cluster is nil when no Cluster owns the control plane yet.
	cluster *clusterv1.Cluster
	// machines are those that the control plane owns, oldest first.
	machines []*machine
	// orphans are control plane Machines of the Cluster that nobody controls.
	orphans []*clusterv1.Machine

	// remediating is the record of the remediation under way as it was read; empty when there is none.
	remediating string

	// provided: all that Machines need is there.
	provided bool
	// founded: this reconcile created the certificate authority of the cluster.
	founded bool
	// confirmed: the API server has confirmed in this reconcile that the cluster is to be initialised now.
	confirmed bool

	// workload is nil while there is no connection.
	workload Workload
	// observed is nil as long as the workload cluster was not looked at.
	observed *Observation
	// waiting says why the workload cluster was not looked at although it should be.
	waiting string
	// lost: the workload cluster has been away for so long that its state counts as unknown.
	lost bool
	// failed says that something which worked on a Machine does not any more.
	failed bool
	// rolling says that the action of this reconcile replaces outdated Machines.
	rolling bool
	// began says that this reconcile is the first to want that action.
	began bool
	// unhealthy says why the action of this reconcile was not taken.
	unhealthy string
}

// machine is a Machine of the control plane and what it was made from.
type machine struct {
	*clusterv1.Machine
	// config is nil if the KubeadmConfig does not exist.
	config *bootstrapv1.KubeadmConfig
	// infrastructure is nil if the infrastructure machine does not exist.
	infrastructure *unstructured.Unstructured
	// outdated says why the Machine has to be replaced.
	outdated []string
}

func (m *machine) deleting() bool { return m.DeletionTimestamp != nil }

// node is the name of the Machine's Node, empty as long as it has none.
func (m *machine) node() string {
	if m.Status.NodeRef == nil {
		return ""
	}
	return m.Status.NodeRef.Name
}

// scope reads what a reconcile needs.
func (c *Controller) scope(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) (*scope, error) {
	cluster, err := OwnerCluster(ctx, c.Client, kcp)
	if err != nil {
		return nil, err
	}
	if cluster == nil {
		name, known := kcp.Labels[clusterv1.ClusterNameLabel]
		if kcp.DeletionTimestamp == nil || !known {
			return &scope{kcp: kcp}, nil
		}
		// The Cluster is gone before its control plane, by force. What is left is found by its name.
		cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: kcp.Namespace, Name: name}}
	}
	s := &scope{kcp: kcp, cluster: cluster, remediating: kcp.Annotations[controlplanev1.RemediationInProgressAnnotation]}
	machines := &clusterv1.MachineList{}
	err = c.Client.List(ctx, machines, client.InNamespace(kcp.Namespace), client.MatchingFields{ClusterIndex: cluster.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel})
	if err != nil {
		return nil, fmt.Errorf("listing the control plane Machines of Cluster %s: %w", s.key(), err)
	}
	for i := range machines.Items {
		if err := c.sort(ctx, s, &machines.Items[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(s.machines, func(a, b *machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return s, nil
}

// sort puts a control plane Machine where it belongs in the scope.
func (c *Controller) sort(ctx context.Context, s *scope, m *clusterv1.Machine) error {
	switch {
	case metav1.IsControlledBy(m, s.kcp):
		member, err := c.member(ctx, s.kcp, m)
		if err != nil {
			return err
		}
		s.machines = append(s.machines, member)
	case metav1.GetControllerOf(m) == nil:
		s.orphans = append(s.orphans, m)
	}
	return nil
}

// member reads what a Machine was made from.
func (c *Controller) member(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane, m *clusterv1.Machine) (*machine, error) {
	member := &machine{Machine: m}
	if ref := m.Spec.Bootstrap.ConfigRef; ref != nil && ref.GroupVersionKind().GroupKind() == configKind.GroupKind() {
		config := &bootstrapv1.KubeadmConfig{}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}, config)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading KubeadmConfig %s/%s: %w", m.Namespace, ref.Name, err)
		}
		if err == nil {
			member.config = config
		}
	}
	infrastructure, err := c.External.Get(ctx, &m.Spec.InfrastructureRef, m.Namespace)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the infrastructure of Machine %s/%s: %w", m.Namespace, m.Name, err)
	}
	if err == nil {
		member.infrastructure = infrastructure
	}
	member.compare(kcp, c.Clock)
	return member, nil
}

func (m *machine) compare(kcp *controlplanev1.KubeadmControlPlane, at clock.PassiveClock) {
	compared := outdated.Machine{Machine: m.Machine, Config: m.config}
	if m.infrastructure != nil {
		compared.Infrastructure = m.infrastructure
	}
	m.outdated = outdated.Reasons(kcp, compared, at.Now())
}

// OwnerCluster is the Cluster that owns the control plane; nil when there is none, or none yet.
func OwnerCluster(ctx context.Context, reader client.Reader, kcp *controlplanev1.KubeadmControlPlane) (*clusterv1.Cluster, error) {
	for _, ref := range kcp.OwnerReferences {
		if ref.Kind != "Cluster" || groupOf(ref.APIVersion) != clusterv1.GroupVersion.Group {
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

func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.cluster) }

// named is the Machine of this name, nil if there is none.
func (s *scope) named(name string) *machine {
	for _, m := range s.machines {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// desired is the number of Machines asked for.
func (s *scope) desired() int {
	if s.kcp.Spec.Replicas == nil {
		return 1
	}
	return int(*s.kcp.Spec.Replicas)
}

// begun says that the cluster has been brought up, which happens once. The Cluster remembers it even if this control
// plane does not.
func (s *scope) begun() bool {
	return s.kcp.Status.Initialized || condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedCondition)
}

// stacked says that every Machine runs a member of etcd, which then is ours to look after.
func (s *scope) stacked() bool {
	config := s.kcp.Spec.KubeadmConfigSpec.ClusterConfiguration
	return config == nil || config.Etcd.External == nil
}

// owner is the reference that marks an object as controlled by the control plane.
func (s *scope) owner() *metav1.OwnerReference {
	return metav1.NewControllerRef(s.kcp, controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"))
}
