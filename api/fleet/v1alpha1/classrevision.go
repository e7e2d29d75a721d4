package v1alpha1

const (
	// ClassLabel is on ClusterClasses that are revisions of a class: its value is the name of the class, as a label value.
	ClassLabel = "fleet.cluster.x-k8s.io/class"
	// RevisionOfAnnotation is on revisions of ClusterClasses, and on their templates: the name that the object has in the files that it was
	// published from.
	RevisionOfAnnotation = "fleet.cluster.x-k8s.io/revision-of"
)
