package storetest

func planClauses() []clause { return nil }
