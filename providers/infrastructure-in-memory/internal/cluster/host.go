package cluster

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// caBackstop bounds the wait for the cluster CA. Secrets are not watched: control plane providers create the CA before they
// request a control plane.
const caBackstop = 5 * time.Second

// host starts the API server of a hosted control plane, and stops it if it is no longer requested.
func (c *Controller) host(ctx context.Context, obj kinds.Cluster) (step.Result, error) {
	key := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Labels[clusterv1.ClusterNameLabel]}
	endpoint, open := c.lab.Server.Endpoint(key)
	if !open || endpoint.Group().UID() != obj.UID {
		return step.Done(), nil // The step open returned early.
	}
	requested := obj.HostedControlPlane()
	if requested == nil {
		obj.Hosted("")
		endpoint.Host("")
		return step.Done(), nil
	}
	issuer := lab.Issuer{Secrets: c.Client, Clock: c.Clock}
	err := issuer.ForAPIServer(ctx, key, endpoint, false)
	if apierrors.IsNotFound(err) {
		return step.WaitAtMost(caBackstop, "Secret "+pki.SecretName(key.Name, pki.ClusterCA)+" to exist"), nil
	}
	if err != nil {
		return step.Done(), err
	}
	endpoint.Host(requested.Version)
	obj.Hosted(requested.Version)
	return step.Done(), nil
}
