package v1alpha3

const (
	// ClusterctlLabel is on everything that clusterctl installs.
	ClusterctlLabel = "clusterctl.cluster.x-k8s.io"

	// ClusterctlCoreLabel is on what clusterctl installs for its own use; its value is the part.
	ClusterctlCoreLabel = "clusterctl.cluster.x-k8s.io/core"

	// ClusterctlCoreLabelInventoryValue marks the Provider objects and their CRD.
	ClusterctlCoreLabelInventoryValue = "inventory"

	// ClusterctlCoreLabelCertManagerValue marks the components of cert-manager.
	ClusterctlCoreLabelCertManagerValue = "cert-manager"

	// ClusterctlMoveLabel on an object, or on a CRD for all of its objects, includes them in a move even if they are not
	// linked to a Cluster; presence counts.
	ClusterctlMoveLabel = "clusterctl.cluster.x-k8s.io/move"

	// ClusterctlMoveHierarchyLabel is like ClusterctlMoveLabel, and includes the objects' dependents.
	ClusterctlMoveHierarchyLabel = "clusterctl.cluster.x-k8s.io/move-hierarchy"
)

const (
	// BlockMoveAnnotation on an object blocks a move until it is removed; presence counts.
	BlockMoveAnnotation = "clusterctl.cluster.x-k8s.io/block-move"

	// DeleteForMoveAnnotation is on objects that are deleted because they have been moved; their infrastructure must be
	// kept.
	DeleteForMoveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"

	// SkipCRDNamePreflightCheckAnnotation on a CRD allows a name other than <lower-case kind in plural>.<group>; presence
	// counts.
	SkipCRDNamePreflightCheckAnnotation = "clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check"

	// CertManagerVersionAnnotation is, on components of cert-manager, the version that was installed.
	CertManagerVersionAnnotation = "cert-manager.clusterctl.cluster.x-k8s.io/version"
)
