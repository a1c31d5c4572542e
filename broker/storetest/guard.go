package storetest

func guardClauses() []clause { return nil }
