package columns

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// printers returns the printers of kinds with more columns than name and age.
func printers() map[schema.GroupVersionKind]table {
	core, apps := corev1.SchemeGroupVersion.WithKind, appsv1.SchemeGroupVersion.WithKind
	rbac := rbacv1.SchemeGroupVersion.WithKind
	return map[schema.GroupVersionKind]table{
		core("Node"): printer(columns("Name", "Status", "Roles", "Age", "Version", "+Internal-IP", "+External-IP",
			"+OS-Image", "+Kernel-Version", "+Container-Runtime"), nodeRow),
		core("Pod"): printer(columns("Name", "Ready", "Status", "Restarts", "Age", "+IP", "+Node", "+Nominated Node",
			"+Readiness Gates"), podRow),
		core("Namespace"):      printer(columns("Name", "Status", "Age"), namespaceRow),
		core("ConfigMap"):      printer(columns("Name", "Data", "Age"), configMapRow),
		core("Secret"):         printer(columns("Name", "Type", "Data", "Age"), secretRow),
		core("Service"):        printer(columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector"), serviceRow),
		core("Endpoints"):      printer(columns("Name", "Endpoints", "Age"), endpointsRow),
		core("ServiceAccount"): printer(columns("Name", "Age"), serviceAccountRow),
		core("Event"):          printer(columns("Last Seen", "Type", "Reason", "Object", "+Source", "Message", "+Name"), eventRow),
		core("PersistentVolume"): printer(columns("Name", "Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim",
			"StorageClass", "Age"), volumeRow),
		core("PersistentVolumeClaim"): printer(columns("Name", "Status", "Volume", "Capacity", "Access Modes", "StorageClass", "Age"), claimRow),

		apps("Deployment"): printer(columns("Name", "Ready", "Up-to-date", "Available", "Age", "+Containers", "+Images", "+Selector"),
			deploymentRow),
		apps("DaemonSet"): printer(columns("Name", "Desired", "Current", "Ready", "Up-to-date", "Available", "Node Selector", "Age",
			"+Containers", "+Images", "+Selector"), daemonSetRow),
		apps("ReplicaSet"):  printer(columns("Name", "Desired", "Current", "Ready", "Age", "+Containers", "+Images", "+Selector"), replicaSetRow),
		apps("StatefulSet"): printer(columns("Name", "Ready", "Age", "+Containers", "+Images"), statefulSetRow),

		batchv1.SchemeGroupVersion.WithKind("Job"):          printer(columns("Name", "Status", "Completions", "Age"), jobRow),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"): printer(columns("Name", "Holder", "Age"), leaseRow),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"): printer(columns("Name", "Min Available", "Max Unavailable",
			"Allowed Disruptions", "Age"), budgetRow),
		storagev1.SchemeGroupVersion.WithKind("StorageClass"): printer(columns("Name", "Provisioner", "ReclaimPolicy",
			"VolumeBindingMode", "AllowVolumeExpansion", "Age"), storageClassRow),
		storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"): printer(columns("Name", "Attacher", "PV", "Node", "Attached", "Age"),
			attachmentRow),

		rbac("ClusterRole"):        printer(columns("Name", "Created At"), createdAtRow),
		rbac("Role"):               printer(columns("Name", "Created At"), createdAtRow),
		rbac("ClusterRoleBinding"): printer(columns("Name", "Role", "Age"), clusterBindingRow),
		rbac("RoleBinding"):        printer(columns("Name", "Role", "Age"), bindingRow),
	}
}

func nodeRow(n *corev1.Node, now time.Time) []any {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = "NotReady"
			if c.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	var roles []string
	for label := range n.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	address := func(t corev1.NodeAddressType) string {
		for _, a := range n.Status.Addresses {
			if a.Type == t {
				return a.Address
			}
		}
		return "<none>"
	}
	info := n.Status.NodeInfo
	unknown := func(s string) string {
		if s == "" {
			return "<unknown>"
		}
		return s
	}
	return []any{
		n.Name, status, orNone(strings.Join(roles, ",")), age(n, now), info.KubeletVersion,
		address(corev1.NodeInternalIP), address(corev1.NodeExternalIP), unknown(info.OSImage), unknown(info.KernelVersion),
		unknown(info.ContainerRuntimeVersion),
	}
}

func podRow(p *corev1.Pod, now time.Time) []any {
	ready, restarts := 0, int32(0)
	status := string(p.Status.Phase)
	if p.Status.Reason != "" {
		status = p.Status.Reason
	}
	for _, c := range p.Status.ContainerStatuses {
		restarts += c.RestartCount
		if c.Ready {
			ready++
		}
		if c.State.Waiting != nil && c.State.Waiting.Reason != "" {
			status = c.State.Waiting.Reason
		}
	}
	if len(p.Status.ContainerStatuses) == 0 && PodReady(p) {
		ready = len(p.Spec.Containers)
	}
	if p.DeletionTimestamp != nil {
		status = "Terminating"
	}
	return []any{
		p.Name, fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers)), status, strconv.Itoa(int(restarts)), age(p, now),
		orNone(p.Status.PodIP), orNone(p.Spec.NodeName), orNone(p.Status.NominatedNodeName), "<none>",
	}
}

// PodReady reports whether a Pod is ready.
func PodReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func namespaceRow(n *corev1.Namespace, now time.Time) []any {
	return []any{n.Name, string(n.Status.Phase), age(n, now)}
}

func configMapRow(c *corev1.ConfigMap, now time.Time) []any {
	return []any{c.Name, strconv.Itoa(len(c.Data) + len(c.BinaryData)), age(c, now)}
}

func secretRow(s *corev1.Secret, now time.Time) []any {
	return []any{s.Name, string(s.Type), strconv.Itoa(len(s.Data)), age(s, now)}
}

func serviceRow(s *corev1.Service, now time.Time) []any {
	var ports []string
	for _, p := range s.Spec.Ports {
		port := fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort != 0 {
			port = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
		ports = append(ports, port)
	}
	return []any{
		s.Name, string(s.Spec.Type), orNone(s.Spec.ClusterIP), orNone(strings.Join(s.Spec.ExternalIPs, ",")),
		orNone(strings.Join(ports, ",")), age(s, now), labels.FormatLabels(s.Spec.Selector),
	}
}

func endpointsRow(e *corev1.Endpoints, now time.Time) []any { //nolint:staticcheck // Served because clients of all versions are.
	var list []string
	for _, subset := range e.Subsets {
		for _, a := range subset.Addresses {
			for _, p := range subset.Ports {
				list = append(list, fmt.Sprintf("%s:%d", a.IP, p.Port))
			}
		}
	}
	return []any{e.Name, orNone(strings.Join(list, ",")), age(e, now)}
}

func serviceAccountRow(s *corev1.ServiceAccount, now time.Time) []any {
	return []any{s.Name, age(s, now)}
}

func eventRow(e *corev1.Event, now time.Time) []any {
	seen := e.LastTimestamp
	if seen.IsZero() {
		seen = metav1.NewTime(e.EventTime.Time)
	}
	if seen.IsZero() {
		seen = e.CreationTimestamp
	}
	object := strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name
	return []any{since(seen, now), e.Type, e.Reason, object, e.Source.Component, strings.TrimSpace(e.Message), e.Name}
}

func volumeRow(v *corev1.PersistentVolume, now time.Time) []any {
	claim := ""
	if v.Spec.ClaimRef != nil {
		claim = v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name
	}
	return []any{
		v.Name, v.Spec.Capacity.Storage().String(), accessModes(v.Spec.AccessModes), string(v.Spec.PersistentVolumeReclaimPolicy),
		string(v.Status.Phase), claim, v.Spec.StorageClassName, age(v, now),
	}
}

func claimRow(c *corev1.PersistentVolumeClaim, now time.Time) []any {
	capacity := ""
	if c.Spec.VolumeName != "" {
		capacity = c.Status.Capacity.Storage().String()
	}
	return []any{
		c.Name, string(c.Status.Phase), c.Spec.VolumeName, capacity, accessModes(c.Spec.AccessModes),
		ptr.Deref(c.Spec.StorageClassName, ""), age(c, now),
	}
}

func accessModes(modes []corev1.PersistentVolumeAccessMode) string {
	short := map[corev1.PersistentVolumeAccessMode]string{
		corev1.ReadWriteOnce: "RWO", corev1.ReadOnlyMany: "ROX", corev1.ReadWriteMany: "RWX", corev1.ReadWriteOncePod: "RWOP",
	}
	var list []string
	for _, m := range modes {
		list = append(list, short[m])
	}
	return strings.Join(list, ",")
}

// workload returns the columns of all kinds with a Pod template.
func workload(template corev1.PodTemplateSpec, selector *metav1.LabelSelector) []any {
	var names, images []string
	for _, c := range template.Spec.Containers {
		names, images = append(names, c.Name), append(images, c.Image)
	}
	return []any{strings.Join(names, ","), strings.Join(images, ","), metav1.FormatLabelSelector(selector)}
}

func deploymentRow(d *appsv1.Deployment, now time.Time) []any {
	return append([]any{
		d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, ptr.Deref(d.Spec.Replicas, 1)),
		strconv.Itoa(int(d.Status.UpdatedReplicas)), strconv.Itoa(int(d.Status.AvailableReplicas)), age(d, now),
	}, workload(d.Spec.Template, d.Spec.Selector)...)
}

func daemonSetRow(d *appsv1.DaemonSet, now time.Time) []any {
	number := func(n int32) string { return strconv.Itoa(int(n)) }
	return append([]any{
		d.Name, number(d.Status.DesiredNumberScheduled), number(d.Status.CurrentNumberScheduled), number(d.Status.NumberReady),
		number(d.Status.UpdatedNumberScheduled), number(d.Status.NumberAvailable),
		labels.FormatLabels(d.Spec.Template.Spec.NodeSelector), age(d, now),
	}, workload(d.Spec.Template, d.Spec.Selector)...)
}

func replicaSetRow(r *appsv1.ReplicaSet, now time.Time) []any {
	return append([]any{
		r.Name, strconv.Itoa(int(ptr.Deref(r.Spec.Replicas, 1))), strconv.Itoa(int(r.Status.Replicas)),
		strconv.Itoa(int(r.Status.ReadyReplicas)), age(r, now),
	}, workload(r.Spec.Template, r.Spec.Selector)...)
}

func statefulSetRow(s *appsv1.StatefulSet, now time.Time) []any {
	return append([]any{
		s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, ptr.Deref(s.Spec.Replicas, 1)), age(s, now),
	}, workload(s.Spec.Template, s.Spec.Selector)[:2]...)
}

func jobRow(j *batchv1.Job, now time.Time) []any {
	status := "Running"
	for _, c := range j.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			status = string(c.Type)
		}
	}
	return []any{j.Name, status, fmt.Sprintf("%d/%d", j.Status.Succeeded, ptr.Deref(j.Spec.Completions, 1)), age(j, now)}
}

func leaseRow(l *coordinationv1.Lease, now time.Time) []any {
	return []any{l.Name, ptr.Deref(l.Spec.HolderIdentity, ""), age(l, now)}
}

func budgetRow(b *policyv1.PodDisruptionBudget, now time.Time) []any {
	minimum, maximum := "N/A", "N/A"
	if b.Spec.MinAvailable != nil {
		minimum = b.Spec.MinAvailable.String()
	}
	if b.Spec.MaxUnavailable != nil {
		maximum = b.Spec.MaxUnavailable.String()
	}
	return []any{b.Name, minimum, maximum, strconv.Itoa(int(b.Status.DisruptionsAllowed)), age(b, now)}
}

func storageClassRow(s *storagev1.StorageClass, now time.Time) []any {
	name := s.Name
	if s.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
		name += " (default)"
	}
	return []any{
		name, s.Provisioner, string(ptr.Deref(s.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)),
		string(ptr.Deref(s.VolumeBindingMode, storagev1.VolumeBindingImmediate)),
		strconv.FormatBool(ptr.Deref(s.AllowVolumeExpansion, false)), age(s, now),
	}
}

func attachmentRow(a *storagev1.VolumeAttachment, now time.Time) []any {
	return []any{
		a.Name, a.Spec.Attacher, ptr.Deref(a.Spec.Source.PersistentVolumeName, ""), a.Spec.NodeName,
		strconv.FormatBool(a.Status.Attached), age(a, now),
	}
}

func createdAtRow(o *metav1.PartialObjectMetadata, _ time.Time) []any {
	return []any{o.Name, o.CreationTimestamp.UTC().Format(time.RFC3339)}
}

func clusterBindingRow(b *rbacv1.ClusterRoleBinding, now time.Time) []any {
	return []any{b.Name, b.RoleRef.Kind + "/" + b.RoleRef.Name, age(b, now)}
}

func bindingRow(b *rbacv1.RoleBinding, now time.Time) []any {
	return []any{b.Name, b.RoleRef.Kind + "/" + b.RoleRef.Name, age(b, now)}
}
