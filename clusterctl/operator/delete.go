package operator

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/apply"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/remove"
)

// Deletion is which declared providers are deleted, and what with them.
type Deletion struct {
	// References are the providers; nil with All.
	References []Reference
	// All selects all declared providers, and the operator.
	All bool
	remove.Options
}

// Doomed is what is deleted, after all checks.
type Doomed struct {
	providers []doomed
	// operator are the objects of the operator.
	operator []unstructured.Unstructured
}

// doomed is a declared provider.
type doomed struct {
	object inventory.Declaration
	entry  clusterctlv1.Provider
	// objects are those that the operator keeps.
	objects []unstructured.Unstructured
}

// IsEmpty reports whether there is nothing to delete.
func (d *Doomed) IsEmpty() bool { return len(d.providers) == 0 && len(d.operator) == 0 }

// PlanDeletion checks everything, and returns what is deleted. It writes nothing.
func PlanDeletion(ctx context.Context, m *management.Cluster, d Deletion) (*Doomed, error) {
	objects, err := inventory.ReadDeclared(ctx, m.Client)
	if err != nil {
		return nil, err
	}
	plan := &Doomed{}
	if d.All {
		if plan.operator, err = objectsOf(ctx, m, d.Options); err != nil {
			return nil, err
		}
		d.References = nil
		for _, o := range objects {
			r := Reference{Type: o.Type, Namespace: o.GetNamespace()}
			r.Name = o.GetName()
			d.References = append(d.References, r)
		}
	}
	if len(d.References) == 0 {
		return plan, nil
	}
	found, err := (&live.Finder{Client: m.Client, Resources: m.Resources}).Find(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range d.References {
		one, err := r.doom(objects, found[r.Label()], d.Options)
		if err != nil {
			return nil, err
		}
		plan.providers = append(plan.providers, one)
	}
	// The operator deletes the core provider last, too.
	slices.SortStableFunc(plan.providers, func(a, b doomed) int { return b.object.Type.Order() - a.object.Type.Order() })
	if err := plan.checkCore(objects); err != nil {
		return nil, err
	}
	return plan, plan.checkUse(ctx, m.Client, found)
}

// objectsOf returns the objects of the operator to delete, also those that an interrupted run left.
func objectsOf(ctx context.Context, m *management.Cluster, o remove.Options) ([]unstructured.Unstructured, error) {
	found, err := (&live.Finder{Client: m.Client, Resources: m.Resources, Selector: Labels()}).Find(ctx)
	if err != nil {
		return nil, err
	}
	all, place := found[""], clusterctlv1.Provider{}
	for i := range all {
		if all[i].GetKind() == "Namespace" {
			place.Namespace = all[i].GetName()
		}
	}
	return remove.Select(&place, all, o), nil
}

// doom returns what is deleted with a provider. One whose object is gone is deleted, too, if an interrupted run left something.
func (r Reference) doom(objects inventory.Declarations, found []unstructured.Unstructured, o remove.Options) (doomed, error) {
	object, declared := objects[r.Label()]
	switch {
	case !declared && (len(found) == 0 || r.Namespace == ""):
		return doomed{}, fmt.Errorf("%s: %s is not declared: "+
			"see `kubectl get %ss -A`, or delete what clusterctl has installed with `clusterctl delete`", r.flag(), r.Label(), r.Type)
	case !declared:
		object = inventory.Declaration{Type: r.Type}
		object.SetGroupVersionKind(inventory.DeclarationKind(r.Type))
		object.SetNamespace(r.Namespace)
		object.SetName(r.Name)
	case r.Namespace != "" && r.Namespace != object.GetNamespace():
		return doomed{}, fmt.Errorf("%s: %s is in namespace %s, not in %s: correct or omit the namespace",
			r.flag(), object, object.GetNamespace(), r.Namespace)
	}
	d := doomed{object: object}
	d.entry.Namespace, d.entry.ProviderName, d.entry.Type = object.GetNamespace(), object.GetName(), string(object.Type)
	for _, selected := range remove.Select(&d.entry, found, o) {
		if kind := selected.GetKind(); kind == "Namespace" || kind == manifest.KindCRD {
			d.objects = append(d.objects, selected)
		}
	}
	return d, nil
}

// checkCore rejects what the operator would wait for: the core provider is deleted after all others.
func (d *Doomed) checkCore(objects inventory.Declarations) error {
	for _, p := range d.providers {
		if p.object.Type != clusterctlv1.CoreProviderType {
			continue
		}
		for label, o := range objects {
			if !slices.ContainsFunc(d.providers, func(other doomed) bool { return other.entry.ManifestLabel() == label }) {
				return fmt.Errorf("--core: %s needs the core provider: delete it, too, or first", o)
			}
		}
	}
	return nil
}

// checkUse rejects what the operator would wait for, and what would delete objects of users.
func (d *Doomed) checkUse(ctx context.Context, c client.Reader, found live.Objects) error {
	var entries []clusterctlv1.Provider
	var all []unstructured.Unstructured
	for _, p := range d.providers {
		user, err := remove.User(ctx, c, found[p.entry.ManifestLabel()])
		if err != nil {
			return err
		}
		if user != "" {
			return fmt.Errorf("%s cannot be deleted, because %s needs it: delete the Cluster first, or move it", p.object, user)
		}
		entries = append(entries, p.entry)
		all = append(all, p.objects...)
	}
	if err := remove.Used(ctx, c, entries, all); err != nil {
		return fmt.Errorf("--include-crd: %w", err)
	}
	return nil
}

// Delete executes a plan. Executing it again completes an interrupted run.
func (a *Applier) Delete(ctx context.Context, d *Doomed) error {
	for _, p := range d.providers {
		if err := a.deleteProvider(ctx, p); err != nil {
			return err
		}
	}
	if len(d.operator) == 0 {
		return nil
	}
	// Only now are the objects of providers gone.
	if err := remove.Used(ctx, a.Client, nil, d.operator); err != nil {
		return fmt.Errorf("--include-crd: %w", err)
	}
	a.IO.Infof("Deleting the operator")
	if err := remove.Delete(ctx, a.Client, d.operator); err != nil {
		return fmt.Errorf("the operator is partially deleted; run the same command again to continue: %w", err)
	}
	return nil
}

// deleteProvider deletes a provider's object, waits until the operator has deleted the provider, and deletes the rest.
func (a *Applier) deleteProvider(ctx context.Context, p doomed) error {
	a.IO.Infof("Deleting %s", p.object)
	o := identity(p.object)
	if err := client.IgnoreNotFound(a.Client.Delete(ctx, o)); err != nil {
		return fmt.Errorf("cannot delete %s: %w", p.object, err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(o.GroupVersionKind())
	w := &apply.Wait{
		Client:  a.Client,
		Timeout: a.Timeout,
		What:    p.object.String() + " is not deleted",
		Report:  func(reason string) { a.IO.Infof("%s: %s", p.object, reason) },
	}
	err := w.UntilGone(ctx, o, list, func(o client.Object) string {
		if u, ok := o.(*unstructured.Unstructured); ok {
			if p, err := statusOf(u); err == nil && p.because(operatorv1.ReadyCondition) != "" {
				return p.because(operatorv1.ReadyCondition)
			}
		}
		return "waiting for the operator to delete it"
	})
	if err != nil {
		return err
	}
	// What Declaration.Variables became.
	err = a.Client.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(o.GetNamespace()),
		client.MatchingLabels{variablesLabel: p.entry.ManifestLabel()})
	if err == nil {
		err = remove.Delete(ctx, a.Client, p.objects)
	}
	if err != nil {
		return fmt.Errorf("%s is partially deleted; run the same command again to continue: %w", p.object, err)
	}
	return nil
}
