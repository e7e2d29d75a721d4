package machinepool

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// bootstrap waits for the bootstrap provider and copies the name of the data Secret. The name changes when the pool refers to
// another config; until the data of the new config exists, the infrastructure provider continues to use the old Secret.
func (c *Controller) bootstrap(ctx context.Context, s *scope) (step.Result, error) {
	p := s.pool
	bootstrap := &p.Spec.Template.Spec.Bootstrap
	ref := &bootstrap.ConfigRef
	if !ref.IsDefined() {
		p.Status.Initialization.BootstrapDataSecretCreated = unlessZero(ptr.Deref(bootstrap.DataSecretName, "") != "")
		setDataRevision(p, p.Annotations[clusterv1.MachinePoolBootstrapRevisionAnnotation])
		return step.Done(), nil
	}
	obj, exists, err := c.adoptObject(ctx, s, ref)
	s.config = reference.FoundOf(obj, exists, err)
	if err != nil {
		return step.Done(), err
	}
	if !exists {
		p.Status.Initialization.BootstrapDataSecretCreated = nil
		return step.Wait(ref.Kind + " " + ref.Name + " to exist").Because(clusterv1.WaitingForDataSecretFallbackV1Beta1Reason), nil
	}
	config := contract.BootstrapOf(obj)
	result, err := reference.CopyBootstrap(config, &p.Status.Initialization.BootstrapDataSecretCreated, bootstrap)
	if err != nil {
		return result, err
	}
	current, err := dataIsCurrent(config)
	if current {
		setDataRevision(p, obj.GetAnnotations()[clusterv1.MachinePoolRevisionAnnotation])
	}
	return result, err
}

// dataIsCurrent reports whether the data of a config is that of its spec. A provider that does not report which generation it has
// observed is assumed to be up to date.
func dataIsCurrent(config contract.Bootstrap) (bool, error) {
	ready, err := config.DataSecretCreated()
	if err != nil || !ready {
		return false, err
	}
	if observed, found := config.ObservedGeneration(); found && observed != config.GetGeneration() {
		return false, nil
	}
	conditions, err := config.Conditions()
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(conditions, func(c clusterv1.Condition) bool {
		return c.Type == clusterv1.ReadyV1Beta1Condition && c.Status == corev1.ConditionFalse
	}), nil
}

// setDataRevision records the revision of the bootstrap data.
func setDataRevision(p *clusterv1.MachinePool, revision string) {
	if revision == "" {
		delete(p.Annotations, clusterv1.MachinePoolDataRevisionAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&p.ObjectMeta, clusterv1.MachinePoolDataRevisionAnnotation, revision)
}
