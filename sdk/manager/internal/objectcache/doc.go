// Package objectcache is the cache of managers. Reads of kinds whose objects cannot be listed fail after a short wait, instead of
// blocking workers. A list by label is cheap: a list of the objects of one Cluster does not visit those of all others.
package objectcache
