package machinedeployment

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/ssa"
)

// desired returns the desired state of a MachineSet. Live is nil if the current MachineSet has to be created.
func (s *scope) desired(live *clusterv1.MachineSet, target rollout.Target) *clusterv1.MachineSet {
	md := s.deployment
	current := live == s.current
	id := s.newIdentity
	if live != nil {
		id = identity{name: live.Name, hash: live.Labels[clusterv1.MachineDeploymentUniqueLabel]}
	}
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: md.Namespace, Name: id.name,
			Annotations:     s.annotations(live, current, target),
			OwnerReferences: []metav1.OwnerReference{ownership.Reference(md, clusterv1.GroupVersion.WithKind(machineDeploymentKind), true)},
			Finalizers:      s.finalizers(live),
		},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: md.Spec.ClusterName,
			Replicas:    ptr.To(target.Replicas),
			Deletion:    clusterv1.MachineSetDeletionSpec{Order: cmp.Or(md.Spec.Deletion.Order, clusterv1.RandomMachineSetDeletionOrder)},
			Selector:    selector(md, live, id),
			Template:    *md.Spec.Template.DeepCopy(),
			// It only concerns new Machines, so that it may change at any time.
			MachineNaming: md.Spec.MachineNaming,
		},
	}
	if !current {
		template := set.Spec.Template.Spec
		set.Spec.Template.Spec = *live.Spec.Template.Spec.DeepCopy()
		setInPlace(&set.Spec.Template.Spec, &template)
	}
	if seconds := &set.Spec.Template.Spec.MinReadySeconds; ptr.Deref(*seconds, 0) == 0 {
		*seconds = nil
	}
	set.Labels = s.labels(id)
	set.Spec.Template.Labels = maps.Clone(set.Labels)
	if live != nil {
		leaveOut(set, live)
	}
	maps.Copy(set.Spec.Template.Labels, set.Spec.Selector.MatchLabels) // the selector must keep matching
	return set
}

// leaveOut leaves out what other versions of Cluster API do not write into MachineSets, as long as it means the same: no MachineSet that
// they have created is worth a write for it.
func leaveOut(set, live *clusterv1.MachineSet) {
	if live.Spec.Template.Labels[clusterv1.MachineDeploymentNameLabel] == "" {
		// The MachineSet controller gives it to Machines.
		delete(set.Spec.Template.Labels, clusterv1.MachineDeploymentNameLabel)
	}
	is := live.Spec.Deletion.Order
	if set.Spec.Deletion.Order == clusterv1.RandomMachineSetDeletionOrder && (is == "" || is == set.Spec.Deletion.Order && !ownsOrder(live)) {
		set.Spec.Deletion.Order = "" // It is the default, which webhooks of v1.7 set.
	}
}

// ownsOrder reports whether this controller has set the order of deletion of a MachineSet, in any version.
func ownsOrder(live *clusterv1.MachineSet) bool {
	ours := ssa.Owned(live, fieldManager)
	return ours.Has(fieldpath.MakePathOrDie("spec", "deletePolicy")) || ours.Has(fieldpath.MakePathOrDie("spec", "deletion", "order"))
}

// labels returns the labels of a MachineSet and its Machines: those of the template, and those that identify Cluster, deployment
// and MachineSet.
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

// selector returns the deployment's selector, narrowed to one MachineSet. An existing MachineSet keeps its selector: another one
// might not match its Machines.
func selector(md *clusterv1.MachineDeployment, live *clusterv1.MachineSet, id identity) metav1.LabelSelector {
	if live != nil {
		return *live.Spec.Selector.DeepCopy()
	}
	return *metav1.AddLabelToSelector(md.Spec.Selector.DeepCopy(), clusterv1.MachineDeploymentUniqueLabel, id.hash)
}

// finalizers returns the finalizers that keep a MachineSet until its Machines are gone, and one of a topology until its templates are
// deleted. They are set at creation, and not added later.
func (s *scope) finalizers(live *clusterv1.MachineSet) []string {
	_, topology := s.deployment.Labels[clusterv1.ClusterTopologyOwnedLabel]
	var out []string
	for _, f := range []struct {
		name string
		add  bool
	}{
		{clusterv1.MachineSetTopologyFinalizer, topology},
		{clusterv1.MachineSetFinalizer, s.guarded},
	} {
		if live == nil && f.add || live != nil && slices.Contains(live.Finalizers, f.name) {
			out = append(out, f.name)
		}
	}
	return out
}

// ownAnnotations lists the annotations that each MachineSet has on its own, and that are not copied from the deployment.
func ownAnnotations() []string {
	return []string{
		clusterv1.RevisionAnnotation, clusterv1.RevisionHistoryAnnotation,
		clusterv1.DesiredReplicasAnnotation, clusterv1.MaxReplicasAnnotation,
	}
}

func (s *scope) annotations(live *clusterv1.MachineSet, current bool, target rollout.Target) map[string]string {
	out := map[string]string{}
	maps.Copy(out, s.deployment.Annotations)
	for _, key := range []string{corev1.LastAppliedConfigAnnotation, conversion.OlderVersionAnnotation, clusterv1.ConversionDataAnnotation} {
		delete(out, key)
	}
	for _, key := range ownAnnotations() {
		delete(out, key)
		if live != nil && metav1.HasAnnotation(live.ObjectMeta, key) {
			out[key] = live.Annotations[key]
		}
	}
	if current {
		s.setRevision(out)
	}
	if current || target.Replicas > 0 {
		desired := s.replicas()
		out[clusterv1.DesiredReplicasAnnotation] = strconv.FormatInt(int64(desired), 10)
		out[clusterv1.MaxReplicasAnnotation] = strconv.FormatInt(int64(desired)+int64(s.surge), 10)
	}
	switch {
	case target.Frozen:
		out[clusterv1.DisableMachineCreateAnnotation] = "true"
	case live != nil && live.Annotations[clusterv1.DisableMachineCreateAnnotation] == "false":
		out[clusterv1.DisableMachineCreateAnnotation] = "false" // So does v1.14, which means the same as without it.
	}
	s.setMoves(out, live, current, target)
	return out
}

// setRevision sets a revision that is higher than those of all old MachineSets. If the set was the current one before, its
// previous revision is added to the history.
func (s *scope) setRevision(annotations map[string]string) {
	next := int64(1)
	for _, set := range s.old() {
		next = max(next, revision(set.Annotations)+1)
	}
	previous := revision(annotations)
	if previous >= next {
		return
	}
	annotations[clusterv1.RevisionAnnotation] = strconv.FormatInt(next, 10)
	if previous == 0 {
		return
	}
	history := strconv.FormatInt(previous, 10)
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
