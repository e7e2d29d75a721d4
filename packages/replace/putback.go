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

// PutBack replaces the objects of an upgrade by those that were there before, in the order of an upgrade: if the new version
// serves already, it does until the former one is available again. The notes say what had to stay, and which Deployments are
// not available.
func (u *Replacer) PutBack(ctx context.Context, entry *journal.Entry) (notes []string, err error) {
	// What was there has precedence; Targets includes what the upgrade created.
	r, err := u.load(ctx, slices.Concat(entry.Objects, entry.Targets), nil)
	if err != nil {
		return nil, err
	}
	r.lenient = true
	former := withBundles(entry.Objects, r.all())
	isDefinition := func(o unstructured.Unstructured) bool { return o.GetKind() == manifest.KindCRD }
	plan := stage.Plan(slices.DeleteFunc(slices.Clone(former), isDefinition), slices.DeleteFunc(r.all(), isDefinition))
	if err := r.execute(ctx, plan); err != nil {
		return nil, err
	}
	if err := r.removeOrphans(ctx, entry.Provider.Namespace); err != nil {
		return nil, err
	}
	// Definitions last: until now, the new version may have used them.
	if err := r.putBackDefinitions(ctx, &entry.Provider, slices.DeleteFunc(former, func(o unstructured.Unstructured) bool { return !isDefinition(o) })); err != nil {
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

// withBundles returns the former objects with the CA bundles of live ones, too: certificates may have been replaced.
func withBundles(former, live []unstructured.Unstructured) []unstructured.Unstructured {
	bundles := merge.BundlesOf(live...)
	var list []unstructured.Unstructured
	for i := range former {
		o := former[i].DeepCopy()
		bundles.Add(o)
		list = append(list, *o)
	}
	return list
}

// putBackDefinitions restores CustomResourceDefinitions, unless objects may be stored in a version that only the new one has,
// and deletes those that only the new version had, unless they have objects.
func (r *run) putBackDefinitions(ctx context.Context, p *clusterctlv1.Provider, former []unstructured.Unstructured) error {
	for i := range former {
		if err := r.refresh(ctx, &former[i]); err != nil {
			return err
		}
		if live := r.get(&former[i]); live != nil {
			if missing := storageversion.Missing(live, &former[i]); len(missing) > 0 {
				r.notes = append(r.notes, fmt.Sprintf("the new CustomResourceDefinition %s stays, because objects may be stored in version %s", live.GetName(), strings.Join(missing, ", ")))
				continue
			}
		}
		if err := r.write(ctx, &former[i], merge.Final); err != nil {
			return err
		}
	}
	for _, o := range r.all() {
		if o.GetKind() != manifest.KindCRD || find(former, &o) != nil {
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
