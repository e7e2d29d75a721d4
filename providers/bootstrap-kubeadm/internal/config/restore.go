package config

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/restorescript"
	"sigs.k8s.io/cluster-api/providers/bootstrap-kubeadm/internal/bootstrapdata"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// restores reports whether the Machine initializes its control plane with data of etcd, even if the cluster has been initialized before.
func (s *scope) restores() bool {
	return s.config.Annotations[fleetv1.RestoreDataAnnotation] != "" && s.machine != nil && s.isControlPlane() && s.canInitialize()
}

// restore reads the Secret with the script that fills etcd's data directory, or waits for it. Secrets like it are not watched.
func (c *Controller) restore(ctx context.Context, s *scope) (step.Result, error) {
	if !s.restores() {
		return step.Done(), nil
	}
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: s.config.Namespace, Name: s.config.Annotations[fleetv1.RestoreDataAnnotation]}
	switch err := c.Live.Get(ctx, key, secret); {
	case apierrors.IsNotFound(err):
		return awaitRestore(s,
			fmt.Sprintf("Secret %s with the data to restore, which annotation %s names", key, fleetv1.RestoreDataAnnotation)), nil
	case err != nil:
		return step.Done(), fmt.Errorf("reading Secret %s: %w", key, err)
	}
	for _, name := range []string{fleetv1.RestoreScriptKey, fleetv1.RestoreConfigKey} {
		if len(secret.Data[name]) == 0 {
			return awaitRestore(s, fmt.Sprintf("key %q of Secret %s, which annotation %s names", name, key, fleetv1.RestoreDataAnnotation)), nil
		}
	}
	s.restored = &bootstrapdata.Restore{
		Script: string(secret.Data[fleetv1.RestoreScriptKey]), Config: string(secret.Data[fleetv1.RestoreConfigKey]),
		DataDir: s.config.Spec.ClusterConfiguration.Etcd.Local.DataDir,
	}
	return step.Done(), nil
}

// awaitRestore sets the condition for a Machine without the data that it restores.
func awaitRestore(s *scope, what string) step.Result {
	condition.Set(s.config, condition.False(bootstrapv1.DataSecretAvailableV1Beta1Condition, clusterv1.ConditionSeverityWarning,
		bootstrapv1.DataSecretGenerationFailedV1Beta1Reason, "Waiting for %s", what))
	return step.WaitAtMost(backstop, what)
}

// initConfiguration returns the configuration of kubeadm init: that of the spec, and for restored data without the preflight check that
// etcd has none. The spec stays as it is: the control plane compares it with its own.
func (s *scope) initConfiguration() *bootstrapv1.InitConfiguration {
	if s.restored == nil {
		return &s.config.Spec.InitConfiguration
	}
	init := s.config.Spec.InitConfiguration.DeepCopy()
	directory := cmp.Or(s.restored.DataDir, restorescript.DefaultDataDir)
	check, ignored := "DirAvailable-"+strings.ReplaceAll(directory, "/", "-"), &init.NodeRegistration.IgnorePreflightErrors
	if !slices.ContainsFunc(*ignored, func(one string) bool { return strings.EqualFold(one, "all") || strings.EqualFold(one, check) }) {
		*ignored = append(*ignored, check) // Beside "all", kubeadm accepts no other.
	}
	return init
}
