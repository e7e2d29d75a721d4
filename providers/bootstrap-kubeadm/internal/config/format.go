package config

import (
	"context"
	"errors"
	"strings"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/cloudinit"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/ignition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// format rejects a config that cannot be rendered in its format, before anything is waited for, and before a Machine takes
// the init lock. Everything can be rendered as cloud-config.
func (c *Controller) format(_ context.Context, s *scope) (step.Result, error) {
	if s.config.Spec.Format != bootstrapv1.Ignition || s.ready() || s.ownData() != nil {
		return step.Done(), nil
	}
	if !c.ignition {
		return step.Stop(), c.failed(s, mistake{
			errors.New("spec.format: ignition requires the feature gate KubeadmBootstrapFormatIgnition of the kubeadm bootstrap provider"),
		})
	}
	if err := ignition.Check(&s.config.Spec, s.older.UseExperimentalRetryJoin); err != nil {
		return step.Stop(), c.failed(s, mistake{err})
	}
	return step.Done(), nil
}

// renderInit renders the data of the Machine that initializes a control plane.
func renderInit(ctx context.Context, s *scope, in bootstrapdata.Input) ([]byte, error) {
	if s.config.Spec.Format != bootstrapv1.Ignition {
		return cloudinit.Init(in)
	}
	document, err := ignition.Init(in, s.config.Spec.Ignition)
	warn(ctx, document)
	return document.JSON, err
}

// renderJoin renders the data of a Machine that joins a cluster.
func renderJoin(ctx context.Context, s *scope, in bootstrapdata.Input) ([]byte, error) {
	if s.config.Spec.Format != bootstrapv1.Ignition {
		return cloudinit.Join(in, s.isControlPlane(), s.older.UseExperimentalRetryJoin)
	}
	document, err := ignition.Join(in, s.config.Spec.Ignition)
	warn(ctx, document)
	return document.JSON, err
}

// maxWarnings is the maximum number of warnings in an event, whose length is limited.
const maxWarnings = 5

// warn records an event about the user's Container Linux Config if the conversion has warnings.
func warn(ctx context.Context, document ignition.Document) {
	if n := min(len(document.Warnings), maxWarnings); n > 0 {
		step.Warning(ctx, "IgnitionWarning", "%s", strings.Join(document.Warnings[:n], "; "))
	}
}
