package clusterclass

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// variables sets status.variables.
func (c *Controller) variables(ctx context.Context, s *scope) (step.Result, error) {
	class := s.ClusterClass
	all, err := c.collect(ctx, class)
	if notReady, ok := errors.AsType[*extension.NotReadyError](err); ok {
		return step.Wait("ExtensionConfig " + notReady.Config + " to be discovered").Because(clusterv1.VariableDiscoveryFailedV1Beta1Reason), nil
	}
	if busy, ok := errors.AsType[*extension.BusyError](err); ok {
		return step.WaitAtMost(busy.RetryAfter(), "an earlier call of the server of extension "+busy.Handler+" to end"), nil
	}
	if err != nil {
		return step.Done(), &step.Error{Reason: clusterv1.VariableDiscoveryFailedV1Beta1Reason, Err: err}
	}
	class.Status.Variables = all
	return step.Done(), nil
}

func (c *Controller) collect(ctx context.Context, class *clusterv1.ClusterClass) ([]clusterv1.ClusterClassStatusVariable, error) {
	sources := []variables.Source{{From: clusterv1.VariableDefinitionFromInline, Variables: class.Spec.Variables}}
	if c.Discover != nil {
		discovered, err := c.Discover(ctx, class)
		if err != nil {
			return nil, fmt.Errorf("discovering the variables of external patches: %w", err)
		}
		sources = append(sources, discovered...)
	}
	all, err := variables.Merge(sources...)
	if err != nil {
		return nil, fmt.Errorf("merging the variables of the class: %w", err)
	}
	return all, checkSize(class, all)
}

// maxClass is the maximum size of a class that etcd stores by default, in bytes.
const maxClass = 3 << 19

// checkSize reports variables with which the status could not be written: only the log would tell.
func checkSize(class *clusterv1.ClusterClass, all []clusterv1.ClusterClassStatusVariable) error {
	stored := class.DeepCopy()
	stored.Status.Variables = all
	encoded, err := json.Marshal(stored)
	if err == nil && len(encoded) > maxClass {
		err = fmt.Errorf("the class has %d bytes with the definitions of its variables, more than can be stored (%d): "+
			"the class or its extensions must define fewer or smaller ones", len(encoded), maxClass)
	}
	return err
}
