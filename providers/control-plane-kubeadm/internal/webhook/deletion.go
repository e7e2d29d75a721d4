package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

const (
	// deletionLimit is the time limit of a decision. The cache may not be filled yet.
	deletionLimit = 2 * time.Second
	// deletionLag is how long a deletion that was allowed counts although the cache does not show it.
	deletionLag = 30 * time.Second
	// deleteForMove is on objects that clusterctl deletes because it has moved them.
	deleteForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"
)

// deletions refuses deletions of control plane Machines by which etcd could lose its quorum (quorum.go), by what is in the cache. What it
// cannot decide, it allows: the pre-terminate hook of the Machine protects etcd in any case, and users must be able to delete
// Machines when something is wrong.
//
// It checks requests of users. Not checked are those of programs that have checked more than this: Kubernetes' own controllers, which
// delete Machines with their owners, and requests that are for one resource version, as those of the control plane controller are. Nor are
// Machines checked whose control plane does not act: because it is being deleted, paused, moved, or held by an operation.
type deletions struct {
	reader client.Reader
	clock  clock.PassiveClock

	mu sync.Mutex
	// allowed is when deletions were allowed: several may be requested before the cache shows the first.
	allowed map[types.UID]time.Time
}

// Handle implements admission.Handler.
func (d *deletions) Handle(ctx context.Context, req admission.Request) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, deletionLimit)
	defer cancel()
	why, err := d.refusal(ctx, req)
	switch {
	case err != nil:
		ctrl.LoggerFrom(ctx).Info("Allowing the deletion of a Machine without a check of etcd's quorum", "Machine",
			req.Namespace+"/"+req.Name, "reason", err.Error())
	case why != "":
		return admission.Denied(why)
	}
	return admission.Allowed("")
}

// refusal returns why a deletion is refused, empty if it is allowed.
func (d *deletions) refusal(ctx context.Context, req admission.Request) (string, error) {
	if checked, err := isByUser(req); !checked || err != nil {
		return "", err
	}
	m := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(req.OldObject.Raw, m); err != nil {
		return "", fmt.Errorf("decoding its metadata: %w", err)
	}
	if mayGo(m) {
		return "", nil
	}
	kcp, cluster, err := d.controlPlane(ctx, m)
	if kcp == nil || err != nil {
		return "", err
	}
	machines := &clusterv1.MachineList{}
	if err := d.reader.List(ctx, machines, client.InNamespace(kcp.Namespace), client.MatchingFields{snapshot.ClusterIndex: cluster.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}); err != nil {
		return "", fmt.Errorf("listing the control plane Machines of Cluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	why := refuse(m.Name, d.members(kcp, machines.Items))
	if why == "" && !ptr.Deref(req.DryRun, false) {
		d.allow(m.UID)
	}
	return why, nil
}

// isByUser reports whether a request is checked: see deletions.
func isByUser(req admission.Request) (bool, error) {
	if slices.Contains([]string{
		"system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccount:kube-system:namespace-controller",
		"system:kube-controller-manager", "system:apiserver",
	}, req.UserInfo.Username) {
		return false, nil
	}
	if len(req.Options.Raw) == 0 {
		return true, nil
	}
	options := &metav1.DeleteOptions{}
	if err := json.Unmarshal(req.Options.Raw, options); err != nil {
		return false, fmt.Errorf("decoding the options of the request: %w", err)
	}
	return options.Preconditions == nil || options.Preconditions.ResourceVersion == nil, nil
}

// mayGo reports whether a Machine may be deleted in any case, by its metadata.
func mayGo(m *metav1.PartialObjectMetadata) bool {
	for _, annotation := range []string{controlplanev1.AllowQuorumLossAnnotation, deleteForMove, clusterv1.PausedAnnotation} {
		if _, ok := m.Annotations[annotation]; ok {
			return true
		}
	}
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	return !controlPlane || m.DeletionTimestamp != nil
}

// controlPlane returns the control plane that controls a Machine, and its Cluster; nil if there is none, or it does not act.
func (d *deletions) controlPlane(
	ctx context.Context, m *metav1.PartialObjectMetadata,
) (*controlplanev1.KubeadmControlPlane, *clusterv1.Cluster, error) {
	owner := metav1.GetControllerOf(m)
	ours := schema.GroupKind{Group: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane"}
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() != ours {
		return nil, nil, nil
	}
	kcp := &controlplanev1.KubeadmControlPlane{}
	key := client.ObjectKey{Namespace: m.Namespace, Name: owner.Name}
	if err := d.reader.Get(ctx, key, kcp); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return nil, nil, fmt.Errorf("reading KubeadmControlPlane %s: %w", key, err)
		}
		return nil, nil, nil
	}
	operation, err := fleetv1.OperationOf(kcp)
	_, paused := kcp.Annotations[clusterv1.PausedAnnotation]
	if kcp.UID != owner.UID || kcp.DeletionTimestamp != nil || paused || err != nil || operation.Holds() ||
		kubeadm.Defined(kcp.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External) {
		return nil, nil, nil // An operation that cannot be read holds the control plane, too.
	}
	cluster, err := snapshot.OwnerCluster(ctx, d.reader, kcp)
	if err != nil || cluster == nil || cluster.DeletionTimestamp != nil || ptr.Deref(cluster.Spec.Paused, false) {
		return nil, nil, err
	}
	return kcp, cluster, nil
}

// members returns the etcd members of a control plane. A Machine without a Node has none that is known.
func (d *deletions) members(kcp *controlplanev1.KubeadmControlPlane, machines []clusterv1.Machine) []member {
	var members []member
	for i := range machines {
		m := &machines[i]
		if !metav1.IsControlledBy(m, kcp) || !m.Status.NodeRef.IsDefined() {
			continue
		}
		at, allowed := d.allowed[m.UID]
		members = append(members, member{
			Machine: m.Name,
			Healthy: condition.IsTrue(m, controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition),
			Leaving: m.DeletionTimestamp != nil || allowed && d.clock.Since(at) < deletionLag,
		})
	}
	return members
}

// allow remembers that a deletion was allowed, and forgets others that the cache shows by now.
func (d *deletions) allow(machine types.UID) {
	for other, at := range d.allowed {
		if d.clock.Since(at) >= deletionLag {
			delete(d.allowed, other)
		}
	}
	if d.allowed == nil {
		d.allowed = map[types.UID]time.Time{}
	}
	d.allowed[machine] = d.clock.Now()
}
