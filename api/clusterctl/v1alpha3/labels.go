package v1alpha3

const (
	// ClusterctlLabel is on everything that clusterctl installs.
	ClusterctlLabel = "clusterctl.cluster.x-k8s.io"

	// ClusterctlCoreLabel is on what clusterctl installs for its own use; its value says which part.
	ClusterctlCoreLabel = "clusterctl.cluster.x-k8s.io/core"

	// ClusterctlCoreLabelInventoryValue marks the Provider objects and their CRD.
	ClusterctlCoreLabelInventoryValue = "inventory"

	// ClusterctlCoreLabelCertManagerValue marks the components of cert-manager.
	ClusterctlCoreLabelCertManagerValue = "cert-manager"

	// ClusterctlMoveLabel on an object, or on a CRD for all of its objects, makes them take part in a move even if
	// nothing links them to a Cluster; presence counts.
	ClusterctlMoveLabel = "clusterctl.cluster.x-k8s.io/move"

	// ClusterctlMoveHierarchyLabel is like ClusterctlMoveLabel, and takes what the objects own along.
	ClusterctlMoveHierarchyLabel = "clusterctl.cluster.x-k8s.io/move-hierarchy"
)

const (
	// BlockMoveAnnotation on an object holds up a move until it is removed; presence counts.
	BlockMoveAnnotation = "clusterctl.cluster.x-k8s.io/block-move"

	// DeleteForMoveAnnotation is on objects that are deleted because they have been moved; what they stand for lives on.
	DeleteForMoveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"

	// SkipCRDNamePreflightCheckAnnotation on a CRD allows a name other than <lower-case kind in plural>.<group>; presence
	// counts.
	SkipCRDNamePreflightCheckAnnotation = "clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check"

	// CertManagerVersionAnnotation is, on components of cert-manager, the version that was installed.
	CertManagerVersionAnnotation = "cert-manager.clusterctl.cluster.x-k8s.io/version"
)
