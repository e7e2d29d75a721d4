package config

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// renderContent replaces the content of a file by what its template results in. Errors do not quote the value of a Secret.
func renderContent(f *bootstrapv1.File, controlPlaneVersion func() (string, error)) error {
	version, err := controlPlaneVersion()
	if err != nil {
		return err
	}
	content, err := executeContent(f.Content, version)
	switch {
	case err != nil && kubeadm.Defined(f.ContentFrom):
		return fmt.Errorf("the value of key %q of Secret %s is not a Go template that can be executed with .controlPlane.version %q",
			f.ContentFrom.Secret.Key, f.ContentFrom.Secret.Name, version)
	case err != nil:
		err = fmt.Errorf("content cannot be executed as a Go template with .controlPlane.version %q: %w", version, err)
		if version == "" {
			return err // The control plane may get a version.
		}
		return mistake{err}
	}
	f.Content = content
	return nil
}

func executeContent(content, version string) (string, error) {
	parsed, err := kubeadm.ParseContent(content)
	if err != nil {
		return "", err
	}
	return parsed.Render(version)
}

// controlPlaneVersion returns the version in the spec of the control plane. It is empty if the Cluster has no control plane object, or that
// has no version. The object is read live: this manager has no cache of control planes, and few configs have templates.
func (c *Controller) controlPlaneVersion(ctx context.Context, s *scope) (string, error) {
	ref := s.cluster.Spec.ControlPlaneRef
	if !ref.IsDefined() {
		return "", nil
	}
	obj, err := c.external.Object(ctx, &ref, s.cluster.Namespace)
	if err != nil {
		return "", fmt.Errorf("reading the version of the control plane: %w", err)
	}
	version, err := contract.ControlPlaneOf(obj).Version()
	return ptr.Deref(version, ""), err
}
