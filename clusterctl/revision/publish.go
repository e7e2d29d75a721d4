package revision

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// ClassKind is the kind of ClusterClasses, in all versions.
func ClassKind() schema.GroupKind { return clusterv1.GroupVersion.WithKind("ClusterClass").GroupKind() }

// IsClass reports whether an object is a ClusterClass.
func IsClass(u *unstructured.Unstructured) bool {
	return u.GroupVersionKind().GroupKind() == ClassKind()
}

// Options are how ClusterClasses are published.
type Options struct {
	// Namespace is set on ClusterClasses and templates that have none. They must not have another one, unless it is empty.
	Namespace string
	// KeepMissing leaves references alone whose templates are not among the objects.
	KeepMissing bool
}

// Published are the objects of revisions.
type Published struct {
	// Objects are all objects in their order, with revisions in the places of ClusterClasses and their templates.
	Objects []*unstructured.Unstructured
	// Classes and Templates are the revisions among them.
	Classes, Templates []*unstructured.Unstructured
}

// Publish turns the ClusterClasses among the objects, and the templates to which they refer, into revisions. The objects are not changed.
func Publish(objects []*unstructured.Unstructured, o Options) (*Published, error) {
	p := &publisher{Options: o, templates: map[*unstructured.Unstructured]*unstructured.Unstructured{}}
	if err := p.sort(objects); err != nil {
		return nil, err
	}
	classes := map[*unstructured.Unstructured]*unstructured.Unstructured{}
	for _, class := range p.classes {
		revision, err := p.class(class)
		if err != nil {
			return nil, err
		}
		classes[class] = revision
	}
	result := &Published{}
	for _, u := range objects {
		switch class, template := classes[u], p.templates[u]; {
		case class != nil:
			result.Objects, result.Classes = append(result.Objects, class), append(result.Classes, class)
		case template != nil:
			result.Objects, result.Templates = append(result.Objects, template), append(result.Templates, template)
		default:
			result.Objects = append(result.Objects, u)
		}
	}
	return result, nil
}

// publisher publishes the ClusterClasses of some objects.
type publisher struct {
	Options
	classes []*unstructured.Unstructured
	others  map[manifest.Key][]*unstructured.Unstructured
	// templates are the revisions of templates.
	templates map[*unstructured.Unstructured]*unstructured.Unstructured
}

// sort finds the ClusterClasses, and what they may refer to by kind and name: namespaces are compared later.
func (p *publisher) sort(objects []*unstructured.Unstructured) error {
	p.others = map[manifest.Key][]*unstructured.Unstructured{}
	seen := map[manifest.Key]bool{}
	for _, u := range objects {
		key := manifest.KeyOf(u)
		key.Namespace = cmp.Or(key.Namespace, p.Namespace)
		if seen[key] {
			return fmt.Errorf("the files have %s twice: remove one of both", manifest.Describe(u))
		}
		seen[key] = true
		if IsClass(u) {
			p.classes = append(p.classes, u)
			continue
		}
		key.Namespace = ""
		p.others[key] = append(p.others[key], u)
	}
	if len(p.classes) == 0 {
		return errors.New("the files have no ClusterClass: add the file that has it with --file")
	}
	return nil
}

// class returns the revision of a ClusterClass, and adds those of its templates.
func (p *publisher) class(class *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	revision, err := p.source(class)
	if err != nil {
		return nil, err
	}
	hashed := revision.DeepCopy()
	counted := References(hashed)
	for i, ref := range References(revision) {
		name, err := p.target(class, ref)
		if err != nil {
			return nil, err
		}
		ref.field["name"], counted[i].field["name"] = name, name
		// Some API servers add it.
		delete(counted[i].field, "namespace")
	}
	return revision, p.complete(revision, hashed)
}

// target returns the name of the template to which a reference of a revision refers, and adds the template's revision.
func (p *publisher) target(class *unstructured.Unstructured, ref Reference) (string, error) {
	own := cmp.Or(class.GetNamespace(), p.Namespace)
	if other := ref.namespace(); other != "" && own != "" && other != own {
		return "", fmt.Errorf("%s: %s refers to %s in namespace %s: a class can only use templates of its own namespace",
			manifest.Describe(class), ref.Path, ref, other)
	}
	for _, u := range p.others[manifest.Key{GroupKind: ref.Kind.GroupKind(), Name: ref.Name}] {
		namespace := cmp.Or(u.GetNamespace(), p.Namespace)
		if wanted := cmp.Or(ref.namespace(), own); namespace != "" && wanted != "" && namespace != wanted {
			continue
		}
		template, err := p.template(u)
		if err != nil {
			return "", err
		}
		return template.GetName(), nil
	}
	if p.KeepMissing {
		return ref.Name, nil
	}
	return "", fmt.Errorf("%s: %s refers to %s, which is not in the files: add its file with --file, "+
		"or leave the reference as it is with --keep-missing", manifest.Describe(class), ref.Path, ref)
}

// template returns the revision of a template.
func (p *publisher) template(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if done := p.templates[u]; done != nil {
		return done, nil
	}
	revision, err := p.source(u)
	if err != nil {
		return nil, err
	}
	if err := p.complete(revision, revision.DeepCopy()); err != nil {
		return nil, err
	}
	p.templates[u] = revision
	return revision, nil
}

// source returns what a revision is made from: a copy without what API servers and controllers have added, under its name in the files. The
// input may be a revision itself.
func (p *publisher) source(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if u.GetName() == "" {
		return nil, fmt.Errorf("a %s has no name: set metadata.name", u.GetKind())
	}
	if p.Namespace != "" && u.GetNamespace() != "" && u.GetNamespace() != p.Namespace {
		return nil, fmt.Errorf("%s is not in namespace %s: leave out --namespace, or set it to that of the files",
			manifest.Describe(u), p.Namespace)
	}
	u = u.DeepCopy()
	if metadata, ok := u.Object["metadata"].(map[string]any); ok {
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
			"deletionGracePeriodSeconds", "managedFields", "selfLink", "ownerReferences", "finalizers", "generateName"} {
			delete(metadata, field)
		}
	}
	delete(u.Object, "status")
	u.SetName(cmp.Or(u.GetAnnotations()[fleetv1.RevisionOfAnnotation], u.GetName()))
	set(u, "annotations", fleetv1.RevisionOfAnnotation, "")
	set(u, "annotations", corev1.LastAppliedConfigAnnotation, "")
	set(u, "labels", fleetv1.ClassLabel, "")
	if u.GetNamespace() == "" && p.Namespace != "" {
		u.SetNamespace(p.Namespace)
	}
	return u, nil
}

// complete sets the name of a revision, from the hash of an object, and what tells where it is from.
func (p *publisher) complete(revision, hashed *unstructured.Unstructured) error {
	base := revision.GetName()
	unstructured.RemoveNestedField(hashed.Object, "metadata", "namespace")
	content, err := json.Marshal(hashed.Object)
	if err != nil {
		return fmt.Errorf("cannot hash %s: %w", manifest.Describe(revision), err)
	}
	// Two objects of one name would be one object, so that five characters are not enough.
	hash := naming.Suffix("revision", string(content)) + naming.Suffix(string(content), "revision")
	revision.SetName(naming.WithSuffix(base, hash))
	set(revision, "annotations", fleetv1.RevisionOfAnnotation, base)
	if IsClass(revision) {
		set(revision, "labels", fleetv1.ClassLabel, naming.LabelValue(base))
	}
	return nil
}

// set sets a label or an annotation; an empty value removes it.
func set(u *unstructured.Unstructured, field, key, value string) {
	m, _, _ := unstructured.NestedMap(u.Object, "metadata", field)
	if m == nil {
		m = map[string]any{}
	}
	if m[key] = value; value == "" {
		delete(m, key)
	}
	if len(m) == 0 {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
		return
	}
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		u.Object["metadata"] = metadata
	}
	metadata[field] = m
}

// Base returns the name of the class of which an object is a revision; empty if it is none.
func Base(class metav1.Object) string {
	if class.GetLabels()[fleetv1.ClassLabel] == "" {
		return ""
	}
	return cmp.Or(class.GetAnnotations()[fleetv1.RevisionOfAnnotation], class.GetLabels()[fleetv1.ClassLabel])
}
