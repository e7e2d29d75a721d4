package v1beta2

import (
	corev1 "k8s.io/api/core/v1"
)

// The types of this file mirror the part of kubeadm's own configuration API that may be embedded in a KubeadmConfig. They
// are independent of a machine's kubeadm version: rendering converts them to the version that kubeadm reads. What kubeadm
// needs beyond them, such as the name, the version and the networks of the cluster, comes from the Cluster and the Machine.

// EncryptionAlgorithmType is an asymmetric encryption algorithm and the size of its keys.
// +kubebuilder:validation:Enum=ECDSA-P256;ECDSA-P384;RSA-2048;RSA-3072;RSA-4096
type EncryptionAlgorithmType string

const (
	// EncryptionAlgorithmECDSAP256 is ECDSA with the curve P-256.
	EncryptionAlgorithmECDSAP256 EncryptionAlgorithmType = "ECDSA-P256"

	// EncryptionAlgorithmECDSAP384 is ECDSA with the curve P-384; it requires Kubernetes 1.34.
	EncryptionAlgorithmECDSAP384 EncryptionAlgorithmType = "ECDSA-P384"

	// EncryptionAlgorithmRSA2048 is RSA with keys of 2048 bits; it is the default.
	EncryptionAlgorithmRSA2048 EncryptionAlgorithmType = "RSA-2048"

	// EncryptionAlgorithmRSA3072 is RSA with keys of 3072 bits.
	EncryptionAlgorithmRSA3072 EncryptionAlgorithmType = "RSA-3072"

	// EncryptionAlgorithmRSA4096 is RSA with keys of 4096 bits.
	EncryptionAlgorithmRSA4096 EncryptionAlgorithmType = "RSA-4096"
)

// ClusterConfiguration is kubeadm's cluster-wide configuration.
// +kubebuilder:validation:MinProperties=1
type ClusterConfiguration struct {
	// etcd configures the etcd cluster: either local or external.
	// +optional
	Etcd Etcd `json:"etcd,omitempty,omitzero"`

	// controlPlaneEndpoint is the stable address of the control plane as `host:port`. Defaults to the Cluster's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint,omitempty"`

	// apiServer configures the API server.
	// +optional
	APIServer APIServer `json:"apiServer,omitempty,omitzero"`

	// controllerManager configures the controller manager.
	// +optional
	ControllerManager ControlPlaneComponent `json:"controllerManager,omitempty,omitzero"`

	// scheduler configures the scheduler.
	// +optional
	Scheduler ControlPlaneComponent `json:"scheduler,omitempty,omitzero"`

	// dns configures the DNS add-on.
	// +optional
	DNS DNS `json:"dns,omitempty,omitzero"`

	// certificatesDir is the directory of the certificates on control plane machines. Defaults to /etc/kubernetes/pki.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	CertificatesDir string `json:"certificatesDir,omitempty"`

	// imageRepository is the registry from which images of the control plane come; defaults to kubeadm's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ImageRepository string `json:"imageRepository,omitempty"`

	// featureGates turns features of kubeadm on or off.
	// +optional
	FeatureGates map[string]bool `json:"featureGates,omitempty"`

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

// ControlPlaneComponent configures one component of the control plane.
// +kubebuilder:validation:MinProperties=1
type ControlPlaneComponent struct {
	// extraArgs are additional command line flags; names are unique.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x.name == y.name))",message="extraArgs name must be unique"
	ExtraArgs []Arg `json:"extraArgs,omitempty"`

	// extraVolumes are additional host paths mounted into the component's Pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraVolumes []HostPathMount `json:"extraVolumes,omitempty"`

	// extraEnvs are additional environment variables; they require Kubernetes 1.31.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraEnvs *[]EnvVar `json:"extraEnvs,omitempty"`
}

// APIServer configures the API server. That it must not be empty is inherited.
type APIServer struct {
	ControlPlaneComponent `json:",inline"`

	// certSANs are additional names and addresses for the serving certificate.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	CertSANs []string `json:"certSANs,omitempty"`
}

// Arg is a command line flag of a component.
type Arg struct {
	// name of the flag, without leading dashes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// value of the flag; may be empty.
	// +required
	// +kubebuilder:validation:MinLength=0
	// +kubebuilder:validation:MaxLength=1024
	Value *string `json:"value,omitempty"`
}

// EnvVar is an environment variable of a component.
type EnvVar struct {
	corev1.EnvVar `json:",inline"`
}

// HostPathMount mounts a path of the machine into a Pod.
type HostPathMount struct {
	// name of the volume in the Pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name,omitempty"`

	// hostPath is the path on the machine.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	HostPath string `json:"hostPath,omitempty"`

	// mountPath is the path in the Pod.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	MountPath string `json:"mountPath,omitempty"`

	// readOnly mounts the volume without write access. Defaults to false.
	// +optional
	ReadOnly *bool `json:"readOnly,omitempty"`

	// pathType is the type of hostPath, and whether it is created if it does not exist.
	// +optional
	PathType corev1.HostPathType `json:"pathType,omitempty"`
}

// ImageMeta overrides the registry and tag of an image.
type ImageMeta struct {
	// imageRepository is the registry of the image; the cluster-wide one when unset.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ImageRepository string `json:"imageRepository,omitempty"`

	// imageTag is the tag of the image; defaults to kubeadm's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	ImageTag string `json:"imageTag,omitempty"`
}

// DNS configures the DNS add-on.
// +kubebuilder:validation:MinProperties=1
type DNS struct {
	ImageMeta `json:",inline"`
}

// Etcd configures the etcd cluster; at most one of its fields may be set.
// +kubebuilder:validation:MinProperties=1
type Etcd struct {
	// local runs an etcd member on every control plane machine; it is the default.
	// +optional
	Local LocalEtcd `json:"local,omitempty,omitzero"`

	// external uses an external etcd cluster.
	// +optional
	External ExternalEtcd `json:"external,omitempty,omitzero"`
}

// LocalEtcd configures the etcd members on control plane machines.
// +kubebuilder:validation:MinProperties=1
type LocalEtcd struct {
	ImageMeta `json:",inline"`

	// dataDir is the directory of etcd's data. Defaults to /var/lib/etcd.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	DataDir string `json:"dataDir,omitempty"`

	// extraArgs are additional command line flags; names are unique.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x.name == y.name))",message="extraArgs name must be unique"
	ExtraArgs []Arg `json:"extraArgs,omitempty"`

	// extraEnvs are additional environment variables; they require Kubernetes 1.31.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	ExtraEnvs *[]EnvVar `json:"extraEnvs,omitempty"`

	// serverCertSANs are additional names and addresses for the serving certificate.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ServerCertSANs []string `json:"serverCertSANs,omitempty"`

	// peerCertSANs are additional names and addresses for the peer certificate.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	PeerCertSANs []string `json:"peerCertSANs,omitempty"`
}

// ExternalEtcd describes an external etcd cluster.
type ExternalEtcd struct {
	// endpoints are the URLs of the members.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Endpoints []string `json:"endpoints,omitempty"`

	// caFile is the path, on the machine, of the CA that signed the members' certificates.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	CAFile string `json:"caFile,omitempty"`

	// certFile is the path, on the machine, of the client certificate.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	CertFile string `json:"certFile,omitempty"`

	// keyFile is the path, on the machine, of the client key.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	KeyFile string `json:"keyFile,omitempty"`
}

// InitConfiguration is the machine's configuration for `kubeadm init`.
// +kubebuilder:validation:MinProperties=1
type InitConfiguration struct {
	// bootstrapTokens are created in the new cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	BootstrapTokens []BootstrapToken `json:"bootstrapTokens,omitempty"`

	// nodeRegistration is how the machine registers as a Node.
	// +optional
	NodeRegistration NodeRegistrationOptions `json:"nodeRegistration,omitempty,omitzero"`

	// localAPIEndpoint is the address of the API server on this machine.
	// +optional
	LocalAPIEndpoint APIEndpoint `json:"localAPIEndpoint,omitempty,omitzero"`

	// skipPhases lists phases of `kubeadm init` to skip.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	SkipPhases []string `json:"skipPhases,omitempty"`

	// patches are applied to the manifests kubeadm writes.
	// +optional
	Patches Patches `json:"patches,omitempty,omitzero"`

	// timeouts of `kubeadm init`.
	// +optional
	Timeouts Timeouts `json:"timeouts,omitempty,omitzero"`
}

// JoinConfiguration is the configuration for `kubeadm join`.
// +kubebuilder:validation:MinProperties=1
type JoinConfiguration struct {
	// nodeRegistration is how the machine registers as a Node.
	// +optional
	NodeRegistration NodeRegistrationOptions `json:"nodeRegistration,omitempty,omitzero"`

	// caCertPath is the path, on the machine, of the cluster's CA. Defaults to /etc/kubernetes/pki/ca.crt.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	CACertPath string `json:"caCertPath,omitempty"`

	// discovery is how the machine discovers and trusts the control plane. Defaults to a new token.
	// +optional
	Discovery Discovery `json:"discovery,omitempty,omitzero"`

	// controlPlane makes the machine join as a control plane machine; a worker has none.
	// +optional
	ControlPlane *JoinControlPlane `json:"controlPlane,omitempty"`

	// skipPhases lists phases of `kubeadm join` to skip.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	SkipPhases []string `json:"skipPhases,omitempty"`

	// patches are applied to the manifests kubeadm writes.
	// +optional
	Patches Patches `json:"patches,omitempty,omitzero"`

	// timeouts of `kubeadm join`.
	// +optional
	Timeouts Timeouts `json:"timeouts,omitempty,omitzero"`
}

// JoinControlPlane is the additional configuration of a joining control plane machine.
type JoinControlPlane struct {
	// localAPIEndpoint is the address of the API server on this machine.
	// +optional
	LocalAPIEndpoint APIEndpoint `json:"localAPIEndpoint,omitempty,omitzero"`
}

// APIEndpoint is the address of the API server on one machine.
// +kubebuilder:validation:MinProperties=1
type APIEndpoint struct {
	// advertiseAddress is the IP address that the API server advertises; defaults to that of the default interface.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=39
	AdvertiseAddress string `json:"advertiseAddress,omitempty"`

	// bindPort is the port on which the API server listens, 6443 when unset.
	// +optional
	// +kubebuilder:validation:Minimum=1
	BindPort int32 `json:"bindPort,omitempty"`
}

// NodeRegistrationOptions is how a machine registers as a Node.
// +kubebuilder:validation:MinProperties=1
type NodeRegistrationOptions struct {
	// name of the Node; the machine's host name when unset.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// criSocket is the socket of the container runtime.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	CRISocket string `json:"criSocket,omitempty"`

	// taints of the Node. Defaults to kubeadm's, which taints control plane machines; an empty list means no taints.
	// +optional
	// +kubebuilder:validation:MinItems=0
	// +kubebuilder:validation:MaxItems=100
	Taints *[]corev1.Taint `json:"taints,omitempty"`

	// kubeletExtraArgs are additional command line flags of the kubelet; names are unique.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=value
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(x, self.exists_one(y, x.name == y.name))",message="kubeletExtraArgs name must be unique"
	KubeletExtraArgs []Arg `json:"kubeletExtraArgs,omitempty"`

	// ignorePreflightErrors lists preflight checks whose failures are ignored; `all` ignores all of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	IgnorePreflightErrors []string `json:"ignorePreflightErrors,omitempty"`

	// imagePullPolicy is when kubeadm pulls the control plane's images; defaults to kubeadm's, IfNotPresent.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// imagePullSerial is whether kubeadm pulls images one after another; defaults to kubeadm's, true. It requires Kubernetes
	// 1.31.
	// +optional
	ImagePullSerial *bool `json:"imagePullSerial,omitempty"`
}

// Discovery is how a machine discovers and trusts the control plane; at most one of BootstrapToken and File may be set.
// +kubebuilder:validation:MinProperties=1
type Discovery struct {
	// bootstrapToken discovers by a shared token.
	// +optional
	BootstrapToken BootstrapTokenDiscovery `json:"bootstrapToken,omitempty,omitzero"`

	// file discovers by a kubeconfig.
	// +optional
	File FileDiscovery `json:"file,omitempty,omitzero"`

	// tlsBootstrapToken is the token for the TLS bootstrap; defaults to that of bootstrapToken.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	TLSBootstrapToken string `json:"tlsBootstrapToken,omitempty"`
}

// BootstrapTokenDiscovery discovers the control plane by a shared token.
// +kubebuilder:validation:MinProperties=1
type BootstrapTokenDiscovery struct {
	// token is the shared token, `<id>.<secret>`. When unset, one is created.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Token string `json:"token,omitempty"`

	// apiServerEndpoint is the address of the API server for discovery, `host:port`. Defaults to the Cluster's endpoint.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	APIServerEndpoint string `json:"apiServerEndpoint,omitempty"`

	// caCertHashes are the public key pins the cluster's CA must match, each `sha256:<hex>`.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	CACertHashes []string `json:"caCertHashes,omitempty"`

	// unsafeSkipCAVerification trusts any CA that knows the token. Defaults to false.
	// +optional
	UnsafeSkipCAVerification *bool `json:"unsafeSkipCAVerification,omitempty"`
}

// FileDiscovery discovers the control plane by a kubeconfig.
type FileDiscovery struct {
	// kubeConfigPath is the path of the kubeconfig on the machine.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	KubeConfigPath string `json:"kubeConfigPath,omitempty"`

	// kubeConfig describes the kubeconfig, which is then written to kubeConfigPath. When unset, the machine must have it.
	// +optional
	KubeConfig FileDiscoveryKubeConfig `json:"kubeConfig,omitempty,omitzero"`
}

// FileDiscoveryKubeConfig describes a kubeconfig with which kubeadm discovers and joins the cluster.
type FileDiscoveryKubeConfig struct {
	// cluster is how to connect to the cluster. When unset, its endpoint and CA are used.
	// +optional
	Cluster KubeConfigCluster `json:"cluster,omitempty,omitzero"`

	// user is how the machine authenticates. Exactly one of its fields must be set.
	// +required
	User KubeConfigUser `json:"user,omitempty,omitzero"`
}

// KubeConfigCluster is how to connect to a cluster.
// +kubebuilder:validation:MinProperties=1
type KubeConfigCluster struct {
	// server is the URL of the API server. Defaults to the endpoint of the Cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Server string `json:"server,omitempty"`

	// tlsServerName is the name to verify the server's certificate for, if it is not that in the URL.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	TLSServerName string `json:"tlsServerName,omitempty"`

	// insecureSkipTLSVerify skips the verification of the server's certificate. Defaults to false.
	// +optional
	InsecureSkipTLSVerify *bool `json:"insecureSkipTLSVerify,omitempty"`

	// certificateAuthorityData has the certificates of the CA, as PEM. Defaults to the CA of the cluster.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=51200
	CertificateAuthorityData []byte `json:"certificateAuthorityData,omitempty"`

	// proxyURL is a proxy for all requests: http, https or socks5.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	ProxyURL string `json:"proxyURL,omitempty"`
}

// KubeConfigUser is how a machine authenticates.
// +kubebuilder:validation:MinProperties=1
type KubeConfigUser struct {
	// authProvider is an authentication plugin of the client.
	// +optional
	AuthProvider KubeConfigAuthProvider `json:"authProvider,omitempty,omitzero"`

	// exec is a program that returns credentials.
	// +optional
	Exec KubeConfigAuthExec `json:"exec,omitempty,omitzero"`
}

// KubeConfigAuthProvider is an authentication plugin of the client.
type KubeConfigAuthProvider struct {
	// name of the plugin.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// config has its parameters.
	// +optional
	Config map[string]string `json:"config,omitempty"`
}

// KubeConfigAuthExec is a program that returns credentials.
type KubeConfigAuthExec struct {
	// command to run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Command string `json:"command,omitempty"`

	// args of the command.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	Args []string `json:"args,omitempty"`

	// env is added to the environment of the host.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Env []KubeConfigAuthExecEnv `json:"env,omitempty"`

	// apiVersion of the credentials. Defaults to client.authentication.k8s.io/v1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	APIVersion string `json:"apiVersion,omitempty"`

	// provideClusterInfo passes information about the cluster to the command, in variable KUBERNETES_EXEC_INFO. Defaults to
	// false.
	// +optional
	ProvideClusterInfo *bool `json:"provideClusterInfo,omitempty"`
}

// KubeConfigAuthExecEnv is a variable of the environment.
type KubeConfigAuthExecEnv struct {
	// name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name,omitempty"`

	// value of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Value string `json:"value,omitempty"`
}

// Patches is where kubeadm finds patches for the manifests it writes.
// +kubebuilder:validation:MinProperties=1
type Patches struct {
	// directory holds the patches, named `<target>[<suffix>][+<patch type>].<json|yaml>`.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Directory string `json:"directory,omitempty"`
}

// Timeouts are how long kubeadm waits for things, in seconds.
// +kubebuilder:validation:MinProperties=1
type Timeouts struct {
	// controlPlaneComponentHealthCheckSeconds is the timeout for a component of the control plane to become healthy, 240 when
	// unset. A KubeadmControlPlane must have the same one for init and join.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ControlPlaneComponentHealthCheckSeconds *int32 `json:"controlPlaneComponentHealthCheckSeconds,omitempty"`

	// kubeletHealthCheckSeconds is the timeout for the kubelet to become healthy, 240 when unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	KubeletHealthCheckSeconds *int32 `json:"kubeletHealthCheckSeconds,omitempty"`

	// kubernetesAPICallSeconds is the timeout of a request to the API server, 60 when unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	KubernetesAPICallSeconds *int32 `json:"kubernetesAPICallSeconds,omitempty"`

	// etcdAPICallSeconds is the timeout of a request to etcd, 120 when unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	EtcdAPICallSeconds *int32 `json:"etcdAPICallSeconds,omitempty"`

	// tlsBootstrapSeconds is the timeout of the kubelet's TLS bootstrap on a joining machine, 300 when unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TLSBootstrapSeconds *int32 `json:"tlsBootstrapSeconds,omitempty"`

	// discoverySeconds is the timeout for a joining machine to verify the identity of the API server, 300 when unset.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DiscoverySeconds *int32 `json:"discoverySeconds,omitempty"`
}
