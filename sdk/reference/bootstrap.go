package reference

import (
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// CopyBootstrap copies whether a bootstrap config is ready, nil if it is not, and the name of its Secret once it is, to the object that
// refers to it. The result states the condition BootstrapReady. An error means that the config violates the contract.
func CopyBootstrap(from contract.Bootstrap, ready **bool, to *clusterv1.Bootstrap) (step.Result, error) {
	isReady, err := from.DataSecretCreated()
	if err != nil {
		return step.Done(), err
	}
	*ready = nil
	if isReady {
		*ready = ptr.To(true)
	}
	result, err := Readiness(from.Object, isReady, clusterv1.BootstrapReadyV1Beta1Condition,
		clusterv1.WaitingForDataSecretFallbackV1Beta1Reason)
	if err != nil || !isReady {
		return result, err
	}
	name, err := from.DataSecretName()
	if err != nil {
		return result, err
	}
	if name == "" {
		return result, contract.Violated("%s %s/%s is ready but status.dataSecretName is empty: its provider must set it",
			from.GetKind(), from.GetNamespace(), from.GetName())
	}
	to.DataSecretName = ptr.To(name)
	return result, nil
}
