package rollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// revision is a MachineSet that a MachineDeployment had as its current one.
type revision struct {
	number int64
	set    *clusterv1beta1.MachineSet
}

// Undo sets the template of a MachineDeployment to that of an earlier revision; 0 means the one before the current. A paused
// MachineDeployment, and a revision without MachineSet, are errors.
func (r *Rollouts) Undo(ctx context.Context, res Resource, to int64) error {
	if res.Type != MachineDeployment {
		return fmt.Errorf("cannot undo %s: only a %s has revisions", res, MachineDeployment)
	}
	if to < 0 {
		return fmt.Errorf("cannot undo %s: --to-revision is %d: it must be the number of a revision, or 0 for the previous one", res, to)
	}
	warned := false
	return r.change(ctx, res, "undo", func(s subject) error {
		d, ok := s.(*deployment)
		if !ok {
			return fmt.Errorf("unexpected type %T", s)
		}
		if _, owned := d.Labels[clusterv1beta1.ClusterTopologyOwnedLabel]; owned && !warned {
			warned = true
			r.Warn("The template of %s is set by the topology of Cluster %s, which reverts the rollback: "+
				"change the Cluster or its ClusterClass instead", res, d.Spec.ClusterName)
		}
		if d.Spec.Paused {
			return fmt.Errorf("it is paused: run `clusterctl alpha rollout resume %s -n %s` first", res, r.Namespace)
		}
		found, err := r.revisions(ctx, &d.MachineDeployment)
		if err != nil {
			return err
		}
		set, err := choose(found, to)
		if err != nil {
			return err
		}
		template := set.Spec.Template.DeepCopy()
		// The controller adds the label to each MachineSet; in a MachineDeployment it would select Machines of another one.
		delete(template.Labels, clusterv1beta1.MachineDeploymentUniqueLabel)
		d.Spec.Template = *template
		return nil
	})
}

// revisions returns the MachineSets of a MachineDeployment that have a revision, the latest first.
func (r *Rollouts) revisions(ctx context.Context, d *clusterv1beta1.MachineDeployment) ([]revision, error) {
	selector, err := metav1.LabelSelectorAsSelector(&d.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("invalid spec.selector: %w", err)
	}
	list := &clusterv1beta1.MachineSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(r.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("cannot list its MachineSets: %w", err)
	}
	var found []revision
	for i := range list.Items {
		set := &list.Items[i]
		number, err := strconv.ParseInt(set.Annotations[clusterv1beta1.RevisionAnnotation], 10, 64)
		if err == nil && metav1.IsControlledBy(set, d) {
			found = append(found, revision{number, set})
		}
	}
	slices.SortFunc(found, func(a, b revision) int { return cmp.Compare(b.number, a.number) })
	return found, nil
}

// choose returns the MachineSet of a revision, or of the second to last if to is 0.
func choose(found []revision, to int64) (*clusterv1beta1.MachineSet, error) {
	if to == 0 {
		if len(found) < 2 {
			return nil, fmt.Errorf("it has no earlier revision")
		}
		return found[1].set, nil
	}
	var numbers []string
	for _, r := range found {
		if r.number == to {
			return r.set, nil
		}
		numbers = append(numbers, strconv.FormatInt(r.number, 10))
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("it has no revision %d, nor any other", to)
	}
	return nil, fmt.Errorf("it has no revision %d: use --to-revision with one of %s", to, strings.Join(numbers, ", "))
}
