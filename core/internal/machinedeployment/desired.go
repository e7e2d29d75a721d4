package machinedeployment

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/provider/ownership"
)

// desired is a MachineSet as the deployment wants it. Live is nil for the current one that has to be made.
func (s *scope) desired(live *clusterv1.MachineSet, target rollout.Target) *clusterv1.MachineSet {
	md := s.deployment
	current := live == s.current
	id := s.fresh
	if live != nil {
		id = identity{name: live.Name, hash: live.Labels[clusterv1.MachineDeploymentUniqueLabel]}
	}
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: md.Namespace, Name: id.name,
			Annotations:     s.annotations(live, current, target),
			OwnerReferences: []metav1.OwnerReference{ownership.Reference(md, clusterv1.GroupVersion.WithKind(machineDeploymentKind), true)},
			Finalizers:      finalizers(md, live),
		},
		Spec: clusterv1.MachineSetSpec{
			ClusterName:     md.Spec.ClusterName,
			Replicas:        ptr.To(target.Replicas),
			MinReadySeconds: ptr.Deref(md.Spec.MinReadySeconds, 0),
			DeletePolicy:    deletePolicy(md),
			Selector:        selector(md, live, id),
			Template:        *md.Spec.Template.DeepCopy(),
		},
	}
	if !current {
		live.Spec.Template.Spec.DeepCopyInto(&set.Spec.Template.Spec)
		own, template := &set.Spec.Template.Spec, md.Spec.Template.Spec.DeepCopy()
		own.NodeDrainTimeout, own.NodeVolumeDetachTimeout, own.NodeDeletionTimeout =
			template.NodeDrainTimeout, template.NodeVolumeDetachTimeout, template.NodeDeletionTimeout
	}
	set.Labels = s.labels(id)
	set.Spec.Template.Labels = maps.Clone(set.Labels)
	maps.Copy(set.Spec.Template.Labels, set.Spec.Selector.MatchLabels) // Machines never leave their set
	return set
}

// labels are those of a MachineSet and of its Machines: the template's and those that tell where it belongs.
func (s *scope) labels(id identity) map[string]string {
	out := map[string]string{}
	maps.Copy(out, s.deployment.Spec.Template.Labels)
	out[clusterv1.ClusterNameLabel] = s.deployment.Spec.ClusterName
	out[clusterv1.MachineDeploymentNameLabel] = s.deployment.Name
	if id.hash != "" {
		out[clusterv1.MachineDeploymentUniqueLabel] = id.hash
	}
	return out
}

// selector is the deployment's, narrowed to one MachineSet. That of a set that exists stays: with another
// one it would lose sight of its Machines.
func selector(md *clusterv1.MachineDeployment, live *clusterv1.MachineSet, id identity) metav1.LabelSelector {
	if live != nil {
		return *live.Spec.Selector.DeepCopy()
	}
	return *metav1.AddLabelToSelector(md.Spec.Selector.DeepCopy(), clusterv1.MachineDeploymentUniqueLabel, id.hash)
}

func deletePolicy(md *clusterv1.MachineDeployment) string {
	if md.Spec.Strategy != nil && md.Spec.Strategy.RollingUpdate != nil {
		if policy := ptr.Deref(md.Spec.Strategy.RollingUpdate.DeletePolicy, ""); policy != "" {
			return policy
		}
	}
	return string(clusterv1.RandomMachineSetDeletePolicy)
}

// finalizers has the one that keeps the MachineSets of a topology until their templates are cleaned up: put
// on when they are made, and left alone from then on.
func finalizers(md *clusterv1.MachineDeployment, live *clusterv1.MachineSet) []string {
	_, wanted := md.Labels[clusterv1.ClusterTopologyOwnedLabel]
	if live != nil {
		wanted = slices.Contains(live.Finalizers, clusterv1.MachineSetTopologyFinalizer)
	}
	if !wanted {
		return nil
	}
	return []string{clusterv1.MachineSetTopologyFinalizer}
}

// bookkeeping are the annotations that are each MachineSet's own, and not copied from the deployment.
func bookkeeping() []string {
	return []string{
		clusterv1.RevisionAnnotation, clusterv1.RevisionHistoryAnnotation,
		clusterv1.DesiredReplicasAnnotation, clusterv1.MaxReplicasAnnotation,
	}
}

func (s *scope) annotations(live *clusterv1.MachineSet, current bool, target rollout.Target) map[string]string {
	out := map[string]string{}
	maps.Copy(out, s.deployment.Annotations)
	delete(out, corev1.LastAppliedConfigAnnotation)
	for _, key := range bookkeeping() {
		delete(out, key)
		if live != nil && metav1.HasAnnotation(live.ObjectMeta, key) {
			out[key] = live.Annotations[key]
		}
	}
	if current {
		s.revise(out)
	}
	if current || target.Replicas > 0 {
		desired := *s.deployment.Spec.Replicas
		out[clusterv1.DesiredReplicasAnnotation] = strconv.FormatInt(int64(desired), 10)
		out[clusterv1.MaxReplicasAnnotation] = strconv.FormatInt(int64(desired+s.surge), 10)
	}
	if target.Frozen {
		out[clusterv1.DisableMachineCreateAnnotation] = "true"
	}
	return out
}

// revise gives the current MachineSet a revision higher than that of all others. A former revision, of a
// set that becomes current again, goes to its history.
func (s *scope) revise(annotations map[string]string) {
	next := int64(1)
	for _, set := range s.old() {
		next = max(next, revision(set.Annotations)+1)
	}
	former := revision(annotations)
	if former >= next {
		return
	}
	annotations[clusterv1.RevisionAnnotation] = strconv.FormatInt(next, 10)
	if former == 0 {
		return
	}
	history := strconv.FormatInt(former, 10)
	if earlier := annotations[clusterv1.RevisionHistoryAnnotation]; earlier != "" {
		history = strings.Join([]string{earlier, history}, ",")
	}
	annotations[clusterv1.RevisionHistoryAnnotation] = history
}

func revision(annotations map[string]string) int64 {
	n, err := strconv.ParseInt(annotations[clusterv1.RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
