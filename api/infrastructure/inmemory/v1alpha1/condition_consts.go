package v1alpha1

import clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

// EndpointFailedReason is why an InMemoryCluster is not Ready: its workload API server cannot listen where
// spec.controlPlaneEndpoint says. The message says what is wrong with it.
const EndpointFailedReason = "EndpointFailed"

// Conditions of InMemoryMachine. Ready summarizes the first two, and for a control plane machine all four.
const (
	// VMProvisionedCondition reports whether the machine itself has started.
	VMProvisionedCondition clusterv1.ConditionType = "VMProvisioned"

	// NodeProvisionedCondition reports whether the machine's Node exists in the workload cluster.
	NodeProvisionedCondition clusterv1.ConditionType = "NodeProvisioned"

	// EtcdProvisionedCondition reports whether the etcd member of a control plane machine has started.
	EtcdProvisionedCondition clusterv1.ConditionType = "EtcdProvisioned"

	// APIServerProvisionedCondition reports whether the API server of a control plane machine has started.
	APIServerProvisionedCondition clusterv1.ConditionType = "APIServerProvisioned"
)

// Reasons of the conditions when they are false, of severity Info where nothing else is said.
const (
	// WaitingForClusterInfrastructureReason: the Cluster's infrastructure is not ready yet.
	WaitingForClusterInfrastructureReason = "WaitingForClusterInfrastructure"

	// WaitingControlPlaneInitializedReason: a worker waits for the first control plane machine.
	WaitingControlPlaneInitializedReason = "WaitingControlPlaneInitialized"

	// WaitingForBootstrapDataReason: the bootstrap data does not exist yet.
	WaitingForBootstrapDataReason = "WaitingForBootstrapData"

	// WaitingForStartupTimeoutReason: the simulated start takes the time that the machine's behaviour asks for.
	WaitingForStartupTimeoutReason = "WaitingForStartupTimeout"

	// KubeadmFailedReason: kubeadm, as it is simulated, does not succeed on the machine; the message says why. The
	// severity is Warning as long as it tries again, and Error once it gave up.
	KubeadmFailedReason = "KubeadmFailed"
)
