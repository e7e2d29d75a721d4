package machinedeployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/reference"
	"sigs.k8s.io/cluster-api/internal/ownership"
	"sigs.k8s.io/cluster-api/internal/step"
)

// adopt gives the MachineDeployment its label and the Cluster as owner, and brings the versions in its references up to
// date: here before its MachineSets are looked at, because they get them from it.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	md := s.deployment
	if md.Labels == nil {
		md.Labels = map[string]string{}
	}
	md.Labels[clusterv1.ClusterNameLabel] = md.Spec.ClusterName
	md.OwnerReferences, _ = ownership.Ensure(md.OwnerReferences, s.clusterReference())
	for _, ref := range templateRefs(md) {
		if _, err := c.external.Versions.Refresh(ctx, ref); err != nil {
			return step.Done(), err
		}
	}
	return step.Done(), nil
}

// templateRefs are the templates that Machines are made from.
func templateRefs(md *clusterv1.MachineDeployment) []*corev1.ObjectReference {
	refs := []*corev1.ObjectReference{&md.Spec.Template.Spec.InfrastructureRef}
	if md.Spec.Template.Spec.Bootstrap.ConfigRef != nil {
		refs = append(refs, md.Spec.Template.Spec.Bootstrap.ConfigRef)
	}
	return refs
}

func (s *scope) clusterReference() metav1.OwnerReference {
	return ownership.Reference(s.cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), false)
}

// collect finds the MachineSets of the deployment, and orphans that its selector matches: those become its
// own when they are written. MachineSets that are being deleted do not count, their Machines go with them.
func (c *Controller) collect(ctx context.Context, s *scope) (step.Result, error) {
	md := s.deployment
	selector, err := metav1.LabelSelectorAsSelector(&md.Spec.Selector)
	if err != nil {
		return step.Done(), step.Terminal(fmt.Errorf("spec.selector of MachineDeployment %s: %w", md.Name, err))
	}
	list := &clusterv1.MachineSetList{}
	err = c.Client.List(ctx, list, client.InNamespace(md.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: md.Spec.ClusterName})
	if err != nil {
		return step.Done(), fmt.Errorf("listing MachineSets: %w", err)
	}
	for i := range list.Items {
		set := &list.Items[i]
		if set.DeletionTimestamp.IsZero() && belongs(md, selector, set) {
			s.sets = append(s.sets, set)
		}
	}
	slices.SortFunc(s.sets, byAge)
	s.known = true
	return step.Done(), nil
}

func belongs(md *clusterv1.MachineDeployment, selector labels.Selector, set *clusterv1.MachineSet) bool {
	if owner := metav1.GetControllerOf(set); owner != nil {
		return owner.UID == md.UID
	}
	return !selector.Empty() && selector.Matches(labels.Set(set.Labels))
}

// byAge orders the oldest first. Times of the API have seconds, within which revisions tell.
func byAge(a, b *clusterv1.MachineSet) int {
	return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(revision(a.Annotations), revision(b.Annotations)), cmp.Compare(a.Name, b.Name))
}

// ownTemplates makes the Cluster an owner of the templates while no MachineSet does.
func (c *Controller) ownTemplates(ctx context.Context, s *scope) error {
	var errs []error
	for _, ref := range templateRefs(s.deployment) {
		_, err := reference.Share(ctx, c.Client, c.external, ref, s.deployment.Namespace, s.clusterReference())
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
