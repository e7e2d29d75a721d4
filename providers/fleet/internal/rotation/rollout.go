package rotation

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
)

// restartControlPlane has the Machines of the control plane replaced that were created before a time.
func (c *Controller) restartControlPlane(ctx context.Context, s *scope, since metav1.Time) error {
	kcp := s.controlPlane
	if err := c.Patch(ctx, kcp, func() { kcp.Spec.Rollout.After = since }); err != nil {
		return fmt.Errorf("setting spec.rollout.after of KubeadmControlPlane %s: %w", kcp.Name, err)
	}
	return nil
}

// restartWorkers has the Machines of MachineDeployments replaced that were created before a time.
func (c *Controller) restartWorkers(ctx context.Context, s *scope, since metav1.Time) error {
	for i := range s.deployments {
		md := &s.deployments[i]
		if !md.Spec.Rollout.After.Time.Before(since.Time) {
			continue
		}
		if err := c.Patch(ctx, md, func() { md.Spec.Rollout.After = since }); err != nil {
			return fmt.Errorf("setting spec.rollout.after of MachineDeployment %s: %w", md.Name, err)
		}
	}
	return nil
}

// inspect reads which certificates the Machines of the control plane have got: the bootstrap provider may have read a Secret from a cache
// that was not up to date.
func (c *Controller) inspect(ctx context.Context, s *scope, known *learned) error {
	var files [][]byte
	for _, a := range authority.All() {
		if secret := s.secrets[a]; secret != nil {
			files = append(files, secret.Data["tls.crt"])
			continue
		}
		files = append(files, nil)
	}
	want := fleetv1.AuthoritiesOf(files...)
	for _, m := range s.controlPlaneMachines() {
		data := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}}
		key := client.ObjectKey{Namespace: m.Namespace, Name: ptr.Deref(m.Spec.Bootstrap.DataSecretName, "")}
		if err := c.Live.Get(ctx, key, data); err != nil {
			return fmt.Errorf("reading Secret %s, the bootstrap data of Machine %s: %w", key.Name, m.Name, err)
		}
		if data.Annotations[fleetv1.AuthoritiesAnnotation] != want {
			known.outdated = true
		}
	}
	known.inspected = true
	return nil
}
