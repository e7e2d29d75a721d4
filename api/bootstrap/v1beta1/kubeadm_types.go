package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1beta2 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
)

// The types of this file mirror the part of kubeadm's own configuration API that may be embedded in a KubeadmConfig. They
// are independent of a machine's kubeadm version: rendering converts them to the version that kubeadm reads. Therefore
// apiVersion and kind are optional and ignored.

// ClusterConfiguration is kubeadm's cluster-wide configuration.
type ClusterConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// etcd configures the etcd cluster: either local or external.
	// +optional
	Etcd Etcd `json:"etcd,omitempty"`

	// networking configures the cluster's networks. Defaults to the Cluster's clusterNetwork.
	// +optional
	Networking Networking `json:"networking,omitempty"`

	// kubernetesVersion of the control plane. Defaults to the Machine's.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// controlPlaneEndpoint is the stable address of the control plane as `host:port`. Defaults to the Cluster's.
	// +optional
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint,omitempty"`

	// apiServer configures the API server.
	// +optional
	APIServer APIServer `json:"apiServer,omitempty"`

	// controllerManager configures the controller manager.
	// +optional
	ControllerManager ControlPlaneComponent `json:"controllerManager,omitempty"`

	// scheduler configures the scheduler.
	// +optional
	Scheduler ControlPlaneComponent `json:"scheduler,omitempty"`

	// dns configures the DNS add-on.
	// +optional
	DNS DNS `json:"dns,omitempty"`

	// certificatesDir is the directory of the certificates on control plane machines.
	// +optional
	CertificatesDir string `json:"certificatesDir,omitempty"`

	// imageRepository is the registry from which images of the control plane come; defaults to kubeadm's.
	// +optional
	ImageRepository string `json:"imageRepository,omitempty"`

	// featureGates turns features of kubeadm on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

	// clusterName is the name kubeadm gives the cluster. Defaults to the Cluster's.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// certificateValidityPeriodDays is for how many days certificates that kubeadm issues are valid, 365 when unset. It
	// requires Kubernetes 1.31, and is at most that of the CAs.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1095
	CertificateValidityPeriodDays int32 `json:"certificateValidityPeriodDays,omitempty"`

	// caCertificateValidityPeriodDays is for how many days the CAs of the cluster are valid, 3650 when unset. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=36500
	CACertificateValidityPeriodDays int32 `json:"caCertificateValidityPeriodDays,omitempty"`

	// encryptionAlgorithm of keys and certificates, RSA-2048 when unset. It requires Kubernetes 1.31. A change applies to
	// certificates that are issued later; CAs and the key of service accounts stay.
	// +optional
	EncryptionAlgorithm EncryptionAlgorithmType `json:"encryptionAlgorithm,omitempty"`
}

// EncryptionAlgorithmType is an algorithm of keys.
type EncryptionAlgorithmType = bootstrapv1beta2.EncryptionAlgorithmType

const (
	// EncryptionAlgorithmECDSAP256 is ECDSA with the curve P-256.
	EncryptionAlgorithmECDSAP256 = bootstrapv1beta2.EncryptionAlgorithmECDSAP256
	// EncryptionAlgorithmECDSAP384 is ECDSA with the curve P-384.
	EncryptionAlgorithmECDSAP384 = bootstrapv1beta2.EncryptionAlgorithmECDSAP384
	// EncryptionAlgorithmRSA2048 is RSA with keys of 2048 bits; it is the default.
	EncryptionAlgorithmRSA2048 = bootstrapv1beta2.EncryptionAlgorithmRSA2048
	// EncryptionAlgorithmRSA3072 is RSA with keys of 3072 bits.
	EncryptionAlgorithmRSA3072 = bootstrapv1beta2.EncryptionAlgorithmRSA3072
	// EncryptionAlgorithmRSA4096 is RSA with keys of 4096 bits.
	EncryptionAlgorithmRSA4096 = bootstrapv1beta2.EncryptionAlgorithmRSA4096
)

// EnvVar is an environment variable of a component.
type EnvVar = bootstrapv1beta2.EnvVar

// ControlPlaneComponent configures one component of the control plane.
type ControlPlaneComponent struct {
	// extraArgs are additional command line flags, without leading dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// extraVolumes are additional host paths mounted into the component's Pod.
	// +optional
	ExtraVolumes []HostPathMount `json:"extraVolumes,omitempty"`

	// extraEnvs are additional environment variables; they require Kubernetes 1.31.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	ExtraEnvs []EnvVar `json:"extraEnvs,omitempty"`
}

// APIServer configures the API server.
type APIServer struct {
	ControlPlaneComponent `json:",inline"`

	// certSANs are additional names and addresses for the serving certificate.
	// +optional
	CertSANs []string `json:"certSANs,omitempty"`

	// timeoutForControlPlane is how long kubeadm waits for the API server to respond.
	// +optional
	TimeoutForControlPlane *metav1.Duration `json:"timeoutForControlPlane,omitempty"`
}

// HostPathMount mounts a path of the machine into a Pod.
type HostPathMount struct {
	// name of the volume in the Pod.
	Name string `json:"name"`

	// hostPath is the path on the machine.
	HostPath string `json:"hostPath"`

	// mountPath is the path in the Pod.
	MountPath string `json:"mountPath"`

	// readOnly mounts the volume without write access.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// pathType is the type of hostPath, and whether it is created if it does not exist.
	// +optional
	PathType corev1.HostPathType `json:"pathType,omitempty"`
}

// ImageMeta overrides the registry and tag of an image.
type ImageMeta struct {
	// imageRepository is the registry of the image; the cluster-wide one when unset.
	// +optional
	ImageRepository string `json:"imageRepository,omitempty"`

	// imageTag is the tag of the image; defaults to kubeadm's.
	// +optional
	ImageTag string `json:"imageTag,omitempty"`
}

// DNS configures the DNS add-on.
type DNS struct {
	ImageMeta `json:",inline"`
}

// Networking configures the cluster's networks.
type Networking struct {
	// serviceSubnet is a comma-separated list of address ranges for Services.
	// +optional
	ServiceSubnet string `json:"serviceSubnet,omitempty"`

	// podSubnet is a comma-separated list of address ranges for Pods.
	// +optional
	PodSubnet string `json:"podSubnet,omitempty"`

	// dnsDomain is the domain of Services.
	// +optional
	DNSDomain string `json:"dnsDomain,omitempty"`
}

// Etcd configures the etcd cluster; at most one of its fields may be set.
type Etcd struct {
	// local runs an etcd member on every control plane machine.
	// +optional
	Local *LocalEtcd `json:"local,omitempty"`

	// external uses an external etcd cluster.
	// +optional
	External *ExternalEtcd `json:"external,omitempty"`
}

// LocalEtcd configures the etcd members on control plane machines.
type LocalEtcd struct {
	ImageMeta `json:",inline"`

	// dataDir is the directory of etcd's data.
	// +optional
	DataDir string `json:"dataDir,omitempty"`

	// extraArgs are additional command line flags, without leading dashes.
	// +optional
	ExtraArgs map[string]string `json:"extraArgs,omitempty"`

	// extraEnvs are additional environment variables; they require Kubernetes 1.31.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	ExtraEnvs []EnvVar `json:"extraEnvs,omitempty"`

	// serverCertSANs are additional names and addresses for the serving certificate.
	// +optional
	ServerCertSANs []string `json:"serverCertSANs,omitempty"`

	// peerCertSANs are additional names and addresses for the peer certificate.
	// +optional
	PeerCertSANs []string `json:"peerCertSANs,omitempty"`
}

// ExternalEtcd describes an external etcd cluster.
type ExternalEtcd struct {
	// endpoints are the URLs of the members.
	Endpoints []string `json:"endpoints"`

	// caFile is the path, on the machine, of the CA that signed the members' certificates.
	CAFile string `json:"caFile"`

	// certFile is the path, on the machine, of the client certificate.
	CertFile string `json:"certFile"`

	// keyFile is the path, on the machine, of the client key.
	KeyFile string `json:"keyFile"`
}

// InitConfiguration is the machine's configuration for `kubeadm init`.
type InitConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// bootstrapTokens are created in the new cluster.
	// +optional
	BootstrapTokens []BootstrapToken `json:"bootstrapTokens,omitempty"`

	// nodeRegistration is how the machine registers as a Node.
	// +optional
	NodeRegistration NodeRegistrationOptions `json:"nodeRegistration,omitempty"`

	// localAPIEndpoint is the address of the API server on this machine.
	// +optional
	LocalAPIEndpoint APIEndpoint `json:"localAPIEndpoint,omitempty"`

	// skipPhases lists phases of `kubeadm init` to skip.
	// +optional
	SkipPhases []string `json:"skipPhases,omitempty"`

	// patches are applied to the manifests kubeadm writes.
	// +optional
	Patches *Patches `json:"patches,omitempty"`
}

// JoinConfiguration is the configuration for `kubeadm join`.
type JoinConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	// nodeRegistration is how the machine registers as a Node.
	// +optional
	NodeRegistration NodeRegistrationOptions `json:"nodeRegistration,omitempty"`

	// caCertPath is the path, on the machine, of the cluster's CA.
	// +optional
	CACertPath string `json:"caCertPath,omitempty"`

	// discovery is how the machine discovers and trusts the control plane. Defaults to a new token.
	// +optional
	Discovery Discovery `json:"discovery,omitempty"`

	// controlPlane makes the machine join as a control plane machine; a worker has none.
	// +optional
	ControlPlane *JoinControlPlane `json:"controlPlane,omitempty"`

	// skipPhases lists phases of `kubeadm join` to skip.
	// +optional
	SkipPhases []string `json:"skipPhases,omitempty"`

	// patches are applied to the manifests kubeadm writes.
	// +optional
	Patches *Patches `json:"patches,omitempty"`
}

// JoinControlPlane is the additional configuration of a joining control plane machine.
type JoinControlPlane struct {
	// localAPIEndpoint is the address of the API server on this machine.
	// +optional
	LocalAPIEndpoint APIEndpoint `json:"localAPIEndpoint,omitempty"`
}

// APIEndpoint is the address of the API server on one machine.
type APIEndpoint struct {
	// advertiseAddress is the IP address that the API server advertises; defaults to that of the default interface.
	// +optional
	AdvertiseAddress string `json:"advertiseAddress,omitempty"`

	// bindPort is the port the API server listens on, 6443 when unset.
	// +optional
	BindPort int32 `json:"bindPort,omitempty"`
}

// NodeRegistrationOptions is how a machine registers as a Node.
type NodeRegistrationOptions struct {
	// name of the Node; the machine's host name when unset.
	// +optional
	Name string `json:"name,omitempty"`

	// criSocket is the socket of the container runtime.
	// +optional
	CRISocket string `json:"criSocket,omitempty"`

	// taints of the Node. Defaults to kubeadm's, which taints control plane machines; an empty list means no taints.
	// +optional
	Taints []corev1.Taint `json:"taints,omitzero"`

	// kubeletExtraArgs are additional command line flags of the kubelet, without leading dashes.
	// +optional
	KubeletExtraArgs map[string]string `json:"kubeletExtraArgs,omitempty"`

	// ignorePreflightErrors lists preflight checks whose failures are ignored; `all` ignores all of them.
	// +optional
	IgnorePreflightErrors []string `json:"ignorePreflightErrors,omitempty"`

	// imagePullPolicy is when kubeadm pulls the control plane's images, IfNotPresent when unset.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	ImagePullPolicy string `json:"imagePullPolicy,omitempty"`

	// imagePullSerial is whether kubeadm pulls images one after another; defaults to kubeadm's, true. It requires Kubernetes
	// 1.31.
	// +optional
	ImagePullSerial *bool `json:"imagePullSerial,omitempty"`
}

// Discovery is how a machine discovers and trusts the control plane; at most one of BootstrapToken and File may be set.
type Discovery struct {
	// bootstrapToken discovers by a shared token.
	// +optional
	BootstrapToken *BootstrapTokenDiscovery `json:"bootstrapToken,omitempty"`

	// file discovers by a kubeconfig.
	// +optional
	File *FileDiscovery `json:"file,omitempty"`

	// tlsBootstrapToken is the token for the TLS bootstrap; defaults to that of bootstrapToken.
	// +optional
	TLSBootstrapToken string `json:"tlsBootstrapToken,omitempty"`

	// timeout of the discovery.
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// BootstrapTokenDiscovery discovers the control plane by a shared token.
type BootstrapTokenDiscovery struct {
	// token is the shared token, `<id>.<secret>`. It is always written.
	// +optional
	Token string `json:"token"`

	// apiServerEndpoint is the address of the API server for discovery, `host:port`.
	// +optional
	APIServerEndpoint string `json:"apiServerEndpoint,omitempty"`

	// caCertHashes are the public key pins the cluster's CA must match, each `sha256:<hex>`.
	// +optional
	CACertHashes []string `json:"caCertHashes,omitempty"`

	// unsafeSkipCAVerification trusts any CA that knows the token.
	// +optional
	UnsafeSkipCAVerification bool `json:"unsafeSkipCAVerification,omitempty"`
}

// FileDiscovery discovers the control plane by a kubeconfig.
type FileDiscovery struct {
	// kubeConfigPath is the path of the kubeconfig on the machine.
	KubeConfigPath string `json:"kubeConfigPath"`

	// kubeConfig describes the kubeconfig, which is then written to kubeConfigPath. When unset, the machine must have it.
	// +optional
	KubeConfig *FileDiscoveryKubeConfig `json:"kubeConfig,omitempty"`
}

// FileDiscoveryKubeConfig describes a kubeconfig with which kubeadm discovers and joins the cluster.
type FileDiscoveryKubeConfig struct {
	// cluster is how to connect to the cluster. When unset, its endpoint and CA are used.
	// +optional
	Cluster *KubeConfigCluster `json:"cluster,omitempty"`

	// user is how the machine authenticates. Exactly one of its fields must be set.
	User KubeConfigUser `json:"user"`
}

// KubeConfigCluster is how to connect to a cluster.
type KubeConfigCluster struct {
	// server is the URL of the API server. Defaults to the endpoint of the Cluster.
	// +optional
	Server string `json:"server,omitempty"`

	// tlsServerName is the name to verify the server's certificate for, if it is not that in the URL.
	// +optional
	TLSServerName string `json:"tlsServerName,omitempty"`

	// insecureSkipTLSVerify skips the verification of the server's certificate.
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`

	// certificateAuthorityData has the certificates of the CA, as PEM. Defaults to the CA of the cluster.
	// +optional
	CertificateAuthorityData []byte `json:"certificateAuthorityData,omitempty"`

	// proxyURL is a proxy for all requests: http, https or socks5.
	// +optional
	ProxyURL string `json:"proxyURL,omitempty"`
}

// KubeConfigUser is how a machine authenticates.
type KubeConfigUser struct {
	// authProvider is an authentication plugin of the client.
	// +optional
	AuthProvider *KubeConfigAuthProvider `json:"authProvider,omitempty"`

	// exec is a program that returns credentials.
	// +optional
	Exec *KubeConfigAuthExec `json:"exec,omitempty"`
}

// KubeConfigAuthProvider is an authentication plugin of the client.
type KubeConfigAuthProvider struct {
	// name of the plugin.
	Name string `json:"name"`

	// config has its parameters.
	// +optional
	Config map[string]string `json:"config,omitempty"`
}

// KubeConfigAuthExec is a program that returns credentials.
type KubeConfigAuthExec struct {
	// command to run.
	Command string `json:"command"`

	// args of the command.
	// +optional
	Args []string `json:"args,omitempty"`

	// env is added to the environment of the host.
	// +optional
	Env []KubeConfigAuthExecEnv `json:"env,omitempty"`

	// apiVersion of the credentials. Defaults to client.authentication.k8s.io/v1.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// provideClusterInfo passes information about the cluster to the command, in variable KUBERNETES_EXEC_INFO.
	// +optional
	ProvideClusterInfo bool `json:"provideClusterInfo,omitempty"`
}

// KubeConfigAuthExecEnv is a variable of the environment.
type KubeConfigAuthExecEnv struct {
	// name of the variable.
	Name string `json:"name"`

	// value of the variable.
	Value string `json:"value"`
}

// Patches is where kubeadm finds patches for the manifests it writes.
type Patches struct {
	// directory holds the patches, named `<target>[<suffix>][+<patch type>].<json|yaml>`.
	// +optional
	Directory string `json:"directory,omitempty"`
}
