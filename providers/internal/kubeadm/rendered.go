package kubeadm

import (
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
)

// RenderedCluster returns the part of a ClusterConfiguration that kubeadm gets. Fields that are stored and have no effect yet are
// not passed on, because kubeadm rejects those that its version does not have.
func RenderedCluster(config *bootstrapv1.ClusterConfiguration) *bootstrapv1.ClusterConfiguration {
	out := config.DeepCopy()
	out.CertificateValidityPeriodDays, out.CACertificateValidityPeriodDays, out.EncryptionAlgorithm = 0, 0, ""
	out.APIServer.ExtraEnvs, out.ControllerManager.ExtraEnvs, out.Scheduler.ExtraEnvs = nil, nil, nil
	if out.Etcd.Local != nil {
		out.Etcd.Local.ExtraEnvs = nil
	}
	return out
}

// RenderedNode returns the part of the registration of a Node that kubeadm gets, see RenderedCluster.
func RenderedNode(registration bootstrapv1.NodeRegistrationOptions) bootstrapv1.NodeRegistrationOptions {
	registration.ImagePullSerial = nil
	return registration
}
