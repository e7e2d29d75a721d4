package topology

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/core/internal/topology/desired"
)

// ClassNotReconciledError says that a ClusterClass cannot be used yet. Its controller will make it usable.
type ClassNotReconciledError struct {
	// Class is namespace and name.
	Class string
	// Reason is what it is that is missing.
	Reason error
}

// Error implements error.
func (e *ClassNotReconciledError) Error() string { return e.Reason.Error() }

// Unwrap is the reason.
func (e *ClassNotReconciledError) Unwrap() error { return e.Reason }

// class reads the class of a Cluster.
func (p *Planner) class(ctx context.Context, cluster *clusterv1.Cluster) (*clusterv1.ClusterClass, error) {
	class, key := &clusterv1.ClusterClass{}, cluster.GetClassKey()
	err := p.Reader.Get(ctx, key, class)
	if apierrors.IsNotFound(err) {
		// A Cluster may come before its class, which wakes it.
		return nil, &ClassNotReconciledError{Class: key.String(), Reason: fmt.Errorf("ClusterClass %s does not exist", key)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading ClusterClass %s: %w", key, err)
	}
	if err := check.Ready(class); err != nil {
		// Most often a template is missing; who made the Cluster looks here, not at the class.
		if _, why := p.blueprint(ctx, cluster, class, compiled{}); why != nil {
			err = fmt.Errorf("%w: %w", err, why)
		}
		return nil, &ClassNotReconciledError{Class: key.String(), Reason: err}
	}
	return class, nil
}

// blueprint reads the templates that a Cluster needs of its class.
func (p *Planner) blueprint(ctx context.Context, cluster *clusterv1.Cluster, class *clusterv1.ClusterClass, made compiled) (*desired.Blueprint, error) {
	b := &desired.Blueprint{
		Class: class, Engine: made.engine,
		MachineDeployments: map[string]desired.Templates{}, MachinePools: map[string]desired.Templates{},
	}
	var err error
	if b.InfrastructureCluster, err = p.template(ctx, class, class.Spec.Infrastructure.Ref); err != nil {
		return nil, err
	}
	if b.ControlPlane, err = p.template(ctx, class, class.Spec.ControlPlane.Ref); err != nil {
		return nil, err
	}
	if machines := class.Spec.ControlPlane.MachineInfrastructure; machines != nil && machines.Ref != nil {
		if b.ControlPlaneMachines, err = p.template(ctx, class, machines.Ref); err != nil {
			return nil, err
		}
	}
	workers := cluster.Spec.Topology.Workers
	if workers == nil {
		return b, nil
	}
	for i := range workers.MachineDeployments {
		if c := desired.MachineDeploymentClass(class, workers.MachineDeployments[i].Class); c != nil {
			if err := p.templates(ctx, class, c.Class, c.Template.Bootstrap.Ref, c.Template.Infrastructure.Ref, b.MachineDeployments); err != nil {
				return nil, err
			}
		}
	}
	for i := range workers.MachinePools {
		if c := desired.MachinePoolClass(class, workers.MachinePools[i].Class); c != nil {
			if err := p.templates(ctx, class, c.Class, c.Template.Bootstrap.Ref, c.Template.Infrastructure.Ref, b.MachinePools); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// templates reads those of one class of workers, once.
func (p *Planner) templates(ctx context.Context, class *clusterv1.ClusterClass, name string, bootstrap, infrastructure *corev1.ObjectReference, into map[string]desired.Templates) error {
	if _, ok := into[name]; ok {
		return nil
	}
	var t desired.Templates
	var err error
	if t.Bootstrap, err = p.template(ctx, class, bootstrap); err != nil {
		return err
	}
	if t.Infrastructure, err = p.template(ctx, class, infrastructure); err != nil {
		return err
	}
	into[name] = t
	return nil
}

// template reads a template at the version that the class names, which is the version that its patches are written for:
// when a provider learns a newer one, neither what patches find nor what becomes of the Cluster changes.
func (p *Planner) template(ctx context.Context, class *clusterv1.ClusterClass, ref *corev1.ObjectReference) (*unstructured.Unstructured, error) {
	template, err := p.External.Exact(ctx, ref, class.Namespace)
	if err != nil {
		return nil, fmt.Errorf("ClusterClass %s: reading a template: %w", client.ObjectKeyFromObject(class), err)
	}
	return template, nil
}
