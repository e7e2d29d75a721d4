package world

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/managers"
)

// operator starts the operator, and writes the releases that it installs.
func (w *World) operator(ctx context.Context) error {
	if err := w.program(ctx, managers.Operator()); err != nil {
		return err
	}
	if err := w.AwaitDefinitions(ctx); err != nil {
		return fmt.Errorf("waiting for the API server to serve all kinds: %w", err)
	}
	var err error
	if w.Releases, err = w.Repository(ctx); err != nil {
		return err
	}
	if err := scenario.ReleaseAgain(w.Releases); err != nil {
		return fmt.Errorf("writing a second release: %w", err)
	}
	w.Recorder, err = history.RecordKinds(ctx, w.Config, scenario.Installed()...)
	return err
}

// undefine deletes the CustomResourceDefinitions that providers leave, so that the next run installs them again.
func (w *World) undefine(ctx context.Context, namespace string) error {
	labels := []client.DeleteAllOfOption{client.HasLabels{clusterv1.ProviderNameLabel}}
	inventory := []client.DeleteAllOfOption{
		client.MatchingLabels{clusterctlv1.ClusterctlCoreLabel: clusterctlv1.ClusterctlCoreLabelInventoryValue},
	}
	for _, selected := range [][]client.DeleteAllOfOption{labels, inventory} {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		if err := w.Client.DeleteAllOf(ctx, crd, selected...); err != nil {
			return fmt.Errorf("deleting the CustomResourceDefinitions of providers: %w", err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
		now, _ := w.Recorder.Now(namespace) // The end must not be recorded in the next run.
		return len(now.Of("CustomResourceDefinition")) == 0, w.Recorder.Err()
	})
}
