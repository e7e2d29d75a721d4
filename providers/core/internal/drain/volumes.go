package drain

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

// Volumes returns the volumes that have to be detached before the machine of a Node is deleted, sorted: those that the Node or
// VolumeAttachments report. Volumes of Pods that stay on the Node do not count, because nothing detaches them.
func (e Evictor) Volumes(ctx context.Context, workload *remote.Cluster, node *corev1.Node, rules Rules) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	set, err := workload.Clientset(e.Timeout)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return volumes(ctx, set, node, rules)
}

func volumes(ctx context.Context, set kubernetes.Interface, node *corev1.Node, rules Rules) ([]string, error) {
	persistent, err := attachments(ctx, set, node.Name)
	if err != nil {
		return nil, err
	}
	if len(persistent) == 0 && len(node.Status.VolumesAttached) == 0 {
		return nil, nil
	}
	staying, err := volumesOfStaying(ctx, set, node, rules)
	if err != nil {
		return nil, err
	}
	var leaving []string
	for _, volume := range persistent {
		if !staying.Has(volume) {
			leaving = append(leaving, volume)
		}
	}
	if len(leaving) > 0 {
		slices.Sort(leaving)
		return slices.Compact(leaving), nil
	}
	for _, v := range node.Status.VolumesAttached {
		name := string(v.Name)
		if !staying.Has(name) && !staying.Has(persistent[attachmentOf(name, node.Name)]) {
			leaving = append(leaving, name)
		}
	}
	slices.Sort(leaving)
	return leaving, nil
}

// csi is how names of volumes in status.volumesAttached begin: "kubernetes.io/csi/DRIVER^HANDLE". Those of in-tree volumes that a driver
// serves have it, too.
const csi = "kubernetes.io/csi/"

// attachmentOf returns the name that Kubernetes gives to the VolumeAttachment of a volume in status.volumesAttached. It leads to the
// PersistentVolume, whose spec does not have the handle if it is for an in-tree volume.
func attachmentOf(attached, node string) string {
	driver, handle, ok := strings.Cut(strings.TrimPrefix(attached, csi), "^")
	if !ok {
		return ""
	}
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// attachments returns the VolumeAttachments of a Node, and the names of their PersistentVolumes. One for an inline volume has its own.
func attachments(ctx context.Context, set kubernetes.Interface, node string) (map[string]string, error) {
	volumes := map[string]string{}
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return set.StorageV1().VolumeAttachments().List(ctx, o)
	}
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if a, ok := o.(*storagev1.VolumeAttachment); ok && a.Spec.NodeName == node {
			volumes[a.Name] = volumeOf(a)
		}
		return nil
	})
	if err != nil && !lacksStorage(set) {
		return nil, fmt.Errorf("listing the VolumeAttachments of the workload cluster: %w", err)
	}
	return volumes, nil
}

// lacksStorage reports whether an API server does not serve VolumeAttachments. Its groups say so, not the error of a list: an API
// server that is not of Kubernetes, such as that of Cluster API v1.7's in-memory provider, may answer with any.
func lacksStorage(set kubernetes.Interface) bool {
	groups, err := set.Discovery().ServerGroups()
	return err == nil && !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == storagev1.GroupName })
}

func volumeOf(a *storagev1.VolumeAttachment) string {
	return ptr.Deref(a.Spec.Source.PersistentVolumeName, a.Name)
}

// volumesOfStaying returns the volumes of Pods that stay on a Node: the names of PersistentVolumes, and what the Node calls them.
func volumesOfStaying(ctx context.Context, set kubernetes.Interface, node *corev1.Node, rules Rules) (sets.Set[string], error) {
	found := sets.New[string]()
	namespaces := readNamespaces(ctx, set)
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return set.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
	}
	ofNode := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node.Name).String()}
	err := pager.New(list).EachListItem(ctx, ofNode, func(o runtime.Object) error {
		pod, ok := o.(*corev1.Pod)
		if !ok || len(claimsOf(pod)) == 0 {
			return nil
		}
		stays, err := rules.stays(pod, namespaces)
		if err != nil || !stays {
			return err
		}
		for _, claim := range claimsOf(pod) {
			names, err := boundTo(ctx, set, pod.Namespace, claim)
			if err != nil {
				return err
			}
			found.Insert(names...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("finding the volumes of Pods that stay on the Node: %w", err)
	}
	return found, nil
}

// stays reports whether a drain leaves a Pod on the Node, with its volumes.
func (r Rules) stays(pod *corev1.Pod, namespaces namespaceLabels) (bool, error) {
	if completed(pod) {
		return false, nil
	}
	owner := metav1.GetControllerOf(pod)
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	if mirror || owner != nil && owner.Kind == "DaemonSet" {
		return true, nil
	}
	drain, err := r.of(pod, namespaces)
	return drain.Behavior == clusterv1.MachineDrainRuleDrainBehaviorSkip, err
}

// claimsOf returns the names of the PersistentVolumeClaims of a Pod.
func claimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}

// boundTo returns the names of the volume that a claim is bound to; none if one of them does not exist.
func boundTo(ctx context.Context, set kubernetes.Interface, namespace, name string) ([]string, error) {
	claim, err := set.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.Spec.VolumeName == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolumeClaim %s/%s of the workload cluster: %w", namespace, name, err)
	}
	volume, err := set.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading PersistentVolume %s of the workload cluster: %w", claim.Spec.VolumeName, err)
	}
	return append(attachedAs(&volume.Spec), volume.Name), nil
}

// attachedAs returns the name of a volume in status.volumesAttached, for the kinds of volumes whose spec has all of it.
func attachedAs(volume *corev1.PersistentVolumeSpec) []string {
	switch v := volume; {
	case v.CSI != nil:
		return []string{csi + v.CSI.Driver + "^" + v.CSI.VolumeHandle}
	case v.ISCSI != nil:
		return []string{fmt.Sprintf("kubernetes.io/iscsi/%s:%s:%d", v.ISCSI.TargetPortal, v.ISCSI.IQN, v.ISCSI.Lun)}
	case v.FC != nil && len(v.FC.TargetWWNs) > 0 && v.FC.Lun != nil:
		return []string{fmt.Sprintf("kubernetes.io/fc/%v:%d", v.FC.TargetWWNs, *v.FC.Lun)}
	case v.FC != nil:
		return []string{fmt.Sprintf("kubernetes.io/fc/%v", v.FC.WWIDs)}
	}
	return nil
}
