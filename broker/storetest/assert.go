package storetest

func assertClauses() []clause { return nil }
