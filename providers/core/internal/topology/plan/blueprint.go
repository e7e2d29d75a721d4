package plan

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
)

// ClassNotReconciledError means that a ClusterClass does not exist or is not reconciled yet. An event of the class triggers
// the next reconcile.
type ClassNotReconciledError struct {
	// Class is its namespace and name, Missing is set if it does not exist.
	Class   string
	Missing bool
	// Reason is why it is unusable.
	Reason error
}

// Error implements error.
func (e *ClassNotReconciledError) Error() string { return e.Reason.Error() }

// Unwrap returns the reason.
func (e *ClassNotReconciledError) Unwrap() error { return e.Reason }

// class reads the class of a Cluster.
func (p *Planner) class(ctx context.Context, cluster *clusterv1.Cluster) (*clusterv1.ClusterClass, error) {
	class, key := &clusterv1.ClusterClass{}, cluster.GetClassKey()
	err := p.Reader.Get(ctx, key, class)
	if apierrors.IsNotFound(err) {
		// A Cluster may be created before its class.
		return nil, &ClassNotReconciledError{
			Class: key.String(), Missing: true, Reason: fmt.Errorf("ClusterClass %s does not exist", key),
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading ClusterClass %s: %w", key, err)
	}
	if err := check.Ready(class); err != nil {
		// In most cases a template does not exist. Users look at the Cluster for that, not at the class.
		if _, missing := p.blueprint(ctx, cluster, class, compiledClass{}); missing != nil {
			err = fmt.Errorf("%w: %w", err, missing)
		}
		return nil, &ClassNotReconciledError{Class: key.String(), Reason: err}
	}
	return class, nil
}

// blueprint reads the templates of the class that a Cluster uses.
func (p *Planner) blueprint(
	ctx context.Context, cluster *clusterv1.Cluster, class *clusterv1.ClusterClass, compiled compiledClass,
) (*desired.Blueprint, error) {
	b := &desired.Blueprint{
		Class: class, Engine: compiled.engine,
		Workers: map[desired.WorkersID]desired.Templates{},
	}
	var err error
	if b.InfrastructureCluster, err = p.template(ctx, class, class.Spec.Infrastructure.TemplateRef); err != nil {
		return nil, err
	}
	if b.ControlPlane, err = p.template(ctx, class, class.Spec.ControlPlane.TemplateRef); err != nil {
		return nil, err
	}
	if machines := class.Spec.ControlPlane.MachineInfrastructure.TemplateRef; machines.IsDefined() {
		if b.ControlPlaneMachines, err = p.template(ctx, class, machines); err != nil {
			return nil, err
		}
	}
	for _, workers := range desired.RequestedBy(cluster) {
		if err := p.addTemplates(ctx, b, desired.WorkersID{Kind: workers.Kind, Name: workers.Class}); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// addTemplates reads the templates of a class of workers, unless they have been read already, or the ClusterClass does not define it.
func (p *Planner) addTemplates(ctx context.Context, b *desired.Blueprint, workers desired.WorkersID) (err error) {
	bootstrap, infrastructure, defined := desired.TemplatesOf(b.Class, workers)
	if _, known := b.Workers[workers]; known || !defined {
		return nil
	}
	var t desired.Templates
	if t.Bootstrap, err = p.template(ctx, b.Class, bootstrap); err != nil {
		return err
	}
	if t.Infrastructure, err = p.template(ctx, b.Class, infrastructure); err != nil {
		return err
	}
	b.Workers[workers] = t
	return nil
}

// template reads a template at the API version in the class, because the patches are written for that version: a newer version
// of the provider must not change their result.
func (p *Planner) template(
	ctx context.Context, class *clusterv1.ClusterClass, ref clusterv1.ClusterClassTemplateReference,
) (*unstructured.Unstructured, error) {
	template, err := p.External.Exact(ctx, ref.ToObjectReference(class.Namespace), class.Namespace)
	if err != nil {
		return nil, fmt.Errorf("ClusterClass %s: reading a template: %w", client.ObjectKeyFromObject(class), err)
	}
	return template, nil
}

// templatesOf returns the templates of a class that a Cluster uses.
func templatesOf(b *desired.Blueprint) []*unstructured.Unstructured {
	all := []*unstructured.Unstructured{b.InfrastructureCluster, b.ControlPlane}
	if b.ControlPlaneMachines != nil {
		all = append(all, b.ControlPlaneMachines)
	}
	for _, t := range b.Workers {
		all = append(all, t.Bootstrap, t.Infrastructure)
	}
	return all
}
