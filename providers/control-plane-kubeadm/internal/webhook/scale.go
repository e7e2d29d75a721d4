package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
)

// scales validates the scale subresource, which bypasses the webhook of the object.
type scales struct {
	reader client.Reader
}

// Handle implements admission.Handler.
func (w scales) Handle(ctx context.Context, req admission.Request) admission.Response {
	scale := &autoscalingv1.Scale{}
	if err := json.Unmarshal(req.Object.Raw, scale); err != nil {
		return admission.Errored(http.StatusBadRequest,
			fmt.Errorf("decoding the scale of KubeadmControlPlane %s/%s: %w", req.Namespace, req.Name, err))
	}
	kcp := &controlplanev1.KubeadmControlPlane{}
	key := client.ObjectKey{Namespace: req.Namespace, Name: req.Name}
	if err := w.reader.Get(ctx, key, kcp); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("reading KubeadmControlPlane %s: %w", key, err))
	}
	if reason := refuseReplicas(scale.Spec.Replicas, &kcp.Spec); reason != "" {
		return admission.Denied("replicas " + reason)
	}
	return admission.Allowed("")
}
