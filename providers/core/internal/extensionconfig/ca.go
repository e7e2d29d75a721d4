package extensionconfig

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension/wire"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// caKey is the key of the CA certificates in a Secret.
const caKey = corev1.ServiceAccountRootCAKey

// ca copies the CA certificates of the annotated Secret into the spec. Nothing is discovered without them: requests would be for a server
// that cannot be trusted.
func (c *Controller) ca(ctx context.Context, config *runtimev1.ExtensionConfig) (step.Result, error) {
	ref, annotated := config.Annotations[runtimev1.InjectCAFromSecretAnnotation]
	if !annotated {
		return step.Done(), nil
	}
	namespace, name, ok := strings.Cut(ref, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return unusable("annotation %s must be <namespace>/<name> of a Secret, not %q",
			runtimev1.InjectCAFromSecretAnnotation, condition.Brief(ref))
	}
	secret := &corev1.Secret{}
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return unusable("Secret %s in annotation %s does not exist", ref, runtimev1.InjectCAFromSecretAnnotation)
	case err != nil:
		return step.Done(), fmt.Errorf("reading Secret %s for the CA: %w", ref, err)
	case len(secret.Data[caKey]) == 0:
		return unusable("Secret %s in annotation %s has no key %s", ref, runtimev1.InjectCAFromSecretAnnotation, caKey)
	}
	if err := wire.CheckCertificates(secret.Data[caKey]); err != nil {
		return unusable("key %s of Secret %s in annotation %s %w", caKey, ref, runtimev1.InjectCAFromSecretAnnotation, err)
	}
	config.Spec.ClientConfig.CABundle = secret.Data[caKey]
	return step.Checkpoint(), nil
}

// unusable waits until the annotation or the Secret changes.
func unusable(format string, args ...any) (step.Result, error) {
	problem := fmt.Errorf(format, args...)
	return step.Wait("the Secret with the CA").WithConditions(condition.False(runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition,
		clusterv1.ConditionSeverityError, runtimev1.DiscoveryFailedV1Beta1Reason, "%s: %v", discoveryFailed, problem)), nil
}
