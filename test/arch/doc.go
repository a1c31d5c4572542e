// Package arch holds tests of the source itself: who may import whom, and what must not
// appear in it. They read the files, so that the test cache sees every change.
package arch
