package replace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/remove"
	"sigs.k8s.io/cluster-api/packages/replace/journal"
	"sigs.k8s.io/cluster-api/packages/replace/merge"
	"sigs.k8s.io/cluster-api/packages/replace/stage"
	"sigs.k8s.io/cluster-api/packages/storageversion"
)

// RollBack replaces the objects of an upgrade by the previous ones, in the order of an upgrade: if the new version already
// serves, it does until the previous one is available again. The notes say what had to stay, and which Deployments are
// not available.
func (u *Replacer) RollBack(ctx context.Context, entry *journal.Entry) (notes []string, err error) {
	// Previous objects have precedence; Targets includes what the upgrade created.
	r, err := u.load(ctx, slices.Concat(entry.Objects, entry.Targets), nil)
	if err != nil {
		return nil, err
	}
	r.lenient = true
	previous := withBundles(entry.Objects, r.all())
	isDefinition := func(o unstructured.Unstructured) bool { return o.GetKind() == manifest.KindCRD }
	plan := stage.Plan(slices.DeleteFunc(slices.Clone(previous), isDefinition), slices.DeleteFunc(r.all(), isDefinition))
	if err := r.execute(ctx, plan); err != nil {
		return nil, err
	}
	if err := r.removeOrphans(ctx, entry.Provider.Namespace); err != nil {
		return nil, err
	}
	// Definitions last: until now, the new version may have used them.
	definitions := slices.DeleteFunc(previous, func(o unstructured.Unstructured) bool { return !isDefinition(o) })
	if err := r.restoreDefinitions(ctx, &entry.Provider, definitions); err != nil {
		return nil, err
	}
	p := entry.Provider.DeepCopy()
	p.TypeMeta = metav1.TypeMeta{APIVersion: clusterctlv1.GroupVersion.String(), Kind: clusterctlv1.ProviderKind}
	p.ObjectMeta = metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.Labels, Annotations: p.Annotations}
	if err := u.record(ctx, p); err != nil {
		return nil, err
	}
	return r.notes, u.end(ctx, entry)
}

// withBundles returns the previous objects with the CA bundles of live ones, too: certificates may have been replaced.
func withBundles(previous, live []unstructured.Unstructured) []unstructured.Unstructured {
	bundles := merge.BundlesOf(live...)
	var list []unstructured.Unstructured
	for i := range previous {
		o := previous[i].DeepCopy()
		bundles.Add(o)
		list = append(list, *o)
	}
	return list
}

// restoreDefinitions restores CustomResourceDefinitions, unless objects may be stored in a version that only the new one has,
// and deletes those that only the new version had, unless they have objects.
func (r *run) restoreDefinitions(ctx context.Context, p *clusterctlv1.Provider, previous []unstructured.Unstructured) error {
	for i := range previous {
		if err := r.refresh(ctx, &previous[i]); err != nil {
			return err
		}
		if live := r.get(&previous[i]); live != nil {
			if missing := storageversion.Missing(live, &previous[i]); len(missing) > 0 {
				r.notes = append(r.notes, fmt.Sprintf("the new CustomResourceDefinition %s stays, because objects may be stored in version %s",
					live.GetName(), strings.Join(missing, ", ")))
				continue
			}
		}
		if err := r.write(ctx, &previous[i], merge.Final); err != nil {
			return err
		}
	}
	for _, o := range r.all() {
		if o.GetKind() != manifest.KindCRD || find(previous, &o) != nil {
			continue
		}
		added := []unstructured.Unstructured{o}
		if err := remove.Used(ctx, r.Client, []clusterctlv1.Provider{*p}, added); err != nil {
			if _, used := errors.AsType[*remove.UsedError](err); !used {
				return err
			}
			r.notes = append(r.notes, fmt.Sprintf("the new CustomResourceDefinition %s stays, because there are objects of its kind", o.GetName()))
			continue
		}
		if err := remove.Delete(ctx, r.Client, added); err != nil {
			return err
		}
	}
	return nil
}
